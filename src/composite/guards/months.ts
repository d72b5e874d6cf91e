/** Names of the months, folded (lower case, no accents), language by language; abbreviations are their first letters. */
const languages: readonly string[] = [
  "january february march april may june july august september october november december",
  "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
  "janvier fevrier mars avril mai juin juillet aout septembre octobre novembre decembre",
  "januar februar marz april mai juni juli august september oktober november dezember",
  "janner feber maerz april mai juni juli august september oktober november dezember",
  "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
  "janeiro fevereiro marco abril maio junho julho agosto setembro outubro novembro dezembro",
  "januari februari maart april mei juni juli augustus september oktober november december",
  "januari februari mrt april mei juni juli augustus september oktober november december",
  "januari februari mars april maj juni juli augusti september oktober november december",
  "januar februar marts april maj juni juli august september oktober november december",
  "tammikuuta helmikuuta maaliskuuta huhtikuuta toukokuuta kesakuuta heinakuuta elokuuta syyskuuta lokakuuta marraskuuta joulukuuta",
  "stycznia lutego marca kwietnia maja czerwca lipca sierpnia wrzesnia pazdziernika listopada grudnia",
  "styczen luty marzec kwiecien maj czerwiec lipiec sierpien wrzesien pazdziernik listopad grudzien",
  "styczniu lutym marcu kwietniu maju czerwcu lipcu sierpniu wrzesniu pazdzierniku listopadzie grudniu",
  "ledna unora brezna dubna kvetna cervna cervence srpna zari rijna listopadu prosince",
  "januara februara marca aprila maja juna jula augusta septembra oktobra novembra decembra",
  "ianuarie februarie martie aprilie mai iunie iulie august septembrie octombrie noiembrie decembrie",
  "januar februar marcius aprilis majus junius julius augusztus szeptember oktober november december",
  "ocak subat mart nisan mayis haziran temmuz agustos eylul ekim kasim aralik",
  "i ii iii iv v vi vii viii ix x xi xii",
  "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
  "сiчня лютого березня квiтня травня червня липня серпня вересня жовтня листопада грудня",
  "ιανουαριου φεβρουαριου μαρτιου απριλιου μαιου ιουνιου ιουλιου αυγουστου σεπτεμβριου οκτωβριου νοεμβριου δεκεμβριου",
  "gener febrer marc abril maig juny juliol agost setembre octubre novembre desembre",
  "januari februari maret april mei juni juli agustus september oktober november desember",
  "जनवरी फरवरी मार्च अप्रैल मई जून जुलाई अगस्त सितंबर अक्टूबर नवंबर दिसंबर",
  "يناير فبراير مارس أبريل مايو يونيو يوليو أغسطس سبتمبر أكتوبر نوفمبر ديسمبر",
];

const numberOf = new Map<string, number>();
for (const names of languages) {
  for (const [month, name] of names.split(" ").entries()) {
    numberOf.set(name, month + 1);
    const isLatin = /^[a-z]/.test(name);
    // three letters distinguish the months of most languages ("mar"), four the rest ("juil"); the first language wins
    for (const length of isLatin ? [3, 4] : [3]) {
      const short = name.slice(0, length);
      if (!numberOf.has(short)) numberOf.set(short, month + 1);
    }
  }
}

/** Which month, from 1, a folded word or its abbreviation names; undefined for any other word. */
export function monthOf(word: string): number | undefined {
  return numberOf.get(word);
}
