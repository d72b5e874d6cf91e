const functionText = `
a about above after again all also although am among amongst an and any are as at be because been before being below
between both but by can cannot could did do does doing done during each either else etc ever every few for from
further had has have having he hence her here hers herein him himself his how however i if in into is it its itself
just may me might more moreover most much must my neither nevertheless no non nor not now of off on once only
onto or other our ours out over own per please same shall she should so some such than that the their theirs them then
there thereby therefore therein these they this those though through thus to too under until up upon us very via was
we were what when where whereas whether which while who whom whose why will with within without would yet you your
yours`;

/** The commonest first, as in general English prose; inflected forms that share a stem with one here are left out. */
const contentText = `
say go get make know one time year think people take see come like two want way look first new day use man find thing
give many well tell even back good woman life child work down call world school still try last ask need feel three
state never become high really something another family leave put old mean keep student let great big group begin seem
country help talk turn problem start hand show part against place case week company system right program hear question
play government run small number always move night live point believe today hold happen next water large million home
room area national money young story fact month different lot study book eye job word business issue side kind four
head far black long little house yes since provide around friend important father sit away power hour game often line
political end stand bad lose member pay law meet car city almost include continue set later community name five white
least president learn real change team minute best several idea kid body information nothing ago lead social
understand watch together follow parent stop face anything create public already speak others read level allow add
office spend door health person art sure war history party grow result open morning walk reason low win research girl
guy early food moment air teacher force offer enough education across remember foot second boy maybe able age policy
everything love process music including consider appear actually buy probably human wait serve market die send expect
sense build stay fall oh nation plan cut college interest death course someone experience behind reach local kill six
remain effect suggest class control raise care perhaps late hard field pass former sell major sometimes require along
development themselves report role better economic effort decide rate strong possible heart drug leader light voice
wife whole police mind finally pull return free military price less according decision explain son hope develop view
relationship carry town road drive arm true federal break difference thank receive value international building action
full model join season society tax director position player agree especially record pick wear paper special space
ground form support event official matter everyone center couple site project hit base activity star table court
produce eat teach oil half situation easy cost industry figure street image phone data cover quite picture clear
practice piece land recent describe product doctor wall patient worker news test movie certain north personal simply
third technology catch step baby computer type attention draw film tree source red nearly organization choose cause
hair century evidence window difficult listen soon culture billion chance brother energy period summer realize hundred
available plant likely opportunity term short letter condition choice single rule daughter administration south
husband floor campaign material population economy medical hospital church close thousand risk current fire future
wrong involve defense anyone increase security bank myself certainly west sport board seek subject officer private
rest behavior deal performance fight throw top quickly past goal bed order author fill represent focus foreign drop
blood agency push nature color recently store reduce sound note fine near movement page enter share common poor
natural race concern series significant similar hot language usually response dead rise animal factor decade article
shoot east save seven artist scene stock career despite central eight treatment beyond happy exactly protect approach
lie size dog fund serious occur media ready sign thought list individual simple quality pressure accept answer
resource identify left meeting determine prepare disease whatever success argue cup particularly amount ability staff
recognize indicate character growth loss degree wonder attack herself region television box training pretty trade
election everybody physical lay general feeling standard bill message fail outside arrive analysis benefit sex forward
lawyer present section environmental glass skill sister professor operation financial crime stage ok compare authority
miss design sort act ten knowledge gun station strategy clearly discuss indeed truth song example democratic check
environment leg dark various rather laugh guess executive prove hang entire rock forget claim remove manager enjoy
network legal religious cold final main science green memory card seat cell establish nice trial expert spring firm
radio visit management avoid imagine tonight huge ball finish yourself theory impact respond statement maintain charge
popular traditional reveal direction weapon employee cultural contain peace pain apply measure wide shake fly
interview manage chair fish particular camera structure politics perform bit weight suddenly discover candidate
production treat trip evening affect inside conference unit style adult worry range mention deep edge specific writer
trouble necessary throughout challenge fear shoulder institution middle sea dream bar beautiful property instead
improve stuff detail method magazine hotel soldier reflect heavy sexual bag heat marriage tough sing surface purpose
exist pattern skin agent owner machine gas ahead generation commercial address cancer item reality coach yard beat
violence total tend investment discussion finger garden notice collection modern task partner positive civil kitchen
consumer shot budget wish painting scientist safe agreement capital mouth victim newspaper instance threat
responsibility smile attorney score account interesting audience rich dinner vote western relate travel debate prevent
citizen majority none front born admit senior assume wind key professional mission fast alone customer suffer speech
successful option participant southern fresh eventually forest video global senate reform access restaurant judge
publish relation release bird opinion credit critical corner concerned recall version stare safety effective
neighborhood original troop income directly hurt species immediately track basic strike sky freedom absolutely plane
nobody achieve object attitude labor refer concept client powerful perfect nine conduct announce conversation examine
touch attend completely variety sleep investigate nuclear researcher press conflict spirit replace encourage argument
camp brain feature afternoon weekend dozen possibility insurance department battle beginning date generally sorry
crisis complete fan stick define easily hole element vision status normal ship solution stone slowly scale university
introduce driver attempt park spot lack ice boat drink sun distance wood handle truck mountain survey supposed
tradition winter village refuse sales roll communication screen gain resident hide gold club farm potential presence
independent district shape reader contract crowd express apartment willing strength previous band obviously horse
interested target prison ride guard terms demand reporter deliver text tool wild vehicle observe flight facility
understanding average emerge advantage quick leadership earn pound basis bright operate guest sample contribute tiny
block protection settle feed collect additional highly identity title mostly lesson faith river promote living count
unless marry tomorrow technique path ear shop folk principle survive lift border competition jump gather limit fit cry
equipment worth associate critic warm aspect insist failure annual comment responsible affair procedure regular spread
chairman baseball soft ignore egg belief demonstrate anybody murder gift religion review editor engage coffee document
speed cross influence anyway threaten commit female youth wave afraid quarter background native broad wonderful deny
apparently slightly reaction twice suit perspective growing blow construction intelligence destroy cook connection
burn shoe grade context committee hey mistake location clothes quiet dress promise aware neighbor function bone active
extend chief combine wine cool voter learning bus hell dangerous remind moral category relatively victory academic
internet healthy negative following historical medicine tour depend photo finding grab direct classroom contact
justice participate daily fair pair famous exercise knee flower tape hire familiar appropriate supply fully actor
birth search tie democracy eastern primary yesterday circle device progress bottom island exchange clean studio train
lady colleague application neck lean damage plastic tall plate hate otherwise writing male alive expression football
intend chicken army abuse theater shut map extra session danger welcome domestic lots literature rain desire
assessment injury respect northern nod paint fuel leaf dry instruction pool climb sweet engine fourth salt expand
importance metal fat ticket software disappear corporate strange lip reading urban mental increasingly lunch
educational somewhere farmer sugar planet favorite explore obtain enemy greatest complex surround athlete invite
repeat carefully soul scientific impossible panel meaning mom married instrument predict weather presidential
emotional commitment supreme bear pocket thin temperature surprise poll proposal consequence breath sight balance
adopt minority straight connect works teaching belong aid advice okay photograph empty regional trail novel code
somehow organize jury breast acknowledge theme storm union desk thanks fruit expensive yellow conclusion prime shadow
struggle conclude analyst dance regulation ring largely shift revenue mark locate county appearance package difficulty
bridge recommend obvious basically generate anymore propose thinking possibly trend visitor loan currently comfortable
investor profit angry crew accident meal hearing traffic muscle notion capture prefer truly earth chest thick cash
museum beauty emergency unique internal ethnic link stress content select root nose declare appreciate actual bottle
hardly setting launch file sick outcome ad defend duty sheet ought ensure extremely extent component mix slow contrast
zone wake airport brown shirt pilot warn ultimately cat contribution capacity estate guide circumstance snow english
politician steal pursue slip percentage meat funny soil surgery correct blame estimate due basketball golf
investigation crazy significantly chain branch combination frequently governor relief user dad kick manner ancient
silence rating golden motion gender solve fee landscape used bowl equal forth frame typical except conservative
eliminate host hall trust ocean row producer afford regime division confirm fix appeal mirror tooth smart length
entirely rely topic complain variable telephone perception attract confidence bedroom secret debt rare tank nurse
coverage opposition aside anywhere bond pleasure master era requirement fun expectation wing separate somebody pour
stir judgment beer reference tear doubt grant seriously minister totally hero industrial cloud stretch winner volume
seed surprised fashion pepper busy intervention copy tip cheap aim cite welfare vegetable gray dish beach improvement
everywhere opening overall divide initial terrible oppose contemporary route multiple essential league criminal
careful core upper rush necessarily specifically tired employ holiday vast resolution household fewer apart witness
match barely sector representative beneath beside incident limited proud flow faculty increased waste merely mass
emphasize experiment definitely bomb enormous tone liberal massive engineer wheel decline invest cable towards expose
rural narrow cream secretary gate solid hill typically noise grass unfortunately hat legislation succeed celebrate
achievement fishing accuse useful reject talent taste characteristic milk escape cast sentence unusual closely
convince height physician assess plenty virtually addition sharp creative lower approve explanation gay campus proper
guilty acquire compete technical plus immigrant weak illegal hi alternative interaction column personality signal
curriculum honor passenger assistance forever regard association twenty knock wrap lab display criticism asset
depression spiritual musical journalist prayer suspect scholar warning climate cheese observation childhood payment
sir permit cigarette definition priority bread creation graduate request emotion scream dramatic universe gap
excellent deeply prosecutor lucky drag airline library agenda recover factory selection primarily roof unable expense
initiative diet arrest funding therapy wash schedule sad brief housing post purchase existing steel regarding shout
remaining visual fairly chip violent silent suppose self bike tea perceive comparison settlement layer planning
description slide widely inform portion territory evaluate expansion`;

/** Words of English that say nothing about a subject. */
export const functionWords: ReadonlySet<string> = new Set(functionText.trim().split(/\s+/));

/** About 1,800 further words of general English, the commonest first. */
export function commonWords(): string[] {
  return contentText.trim().split(/\s+/);
}
