const functionText = `
a about above after again all also although am among amongst an and any are as at be because been before being below
between both but by can cannot could did do does doing done during each either else etc ever every few for from
further had has have having he hence her here hers herein him himself his how however i if in into is it its itself
just may me might more moreover most much must my neither nevertheless no non nor not now of off on once one only
onto or other our ours out over own per please same shall she should so some such than that the their theirs them then
there thereby therefore therein these they this those though through thus to too under until up upon us very via was
we were what when where whereas whether which while who whom whose why will with within without would yet you your
yours`;

/** Words of English that say nothing about a subject. */
export const functionWords: ReadonlySet<string> = new Set(functionText.trim().split(/\s+/));
