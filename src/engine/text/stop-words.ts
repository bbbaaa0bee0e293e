/**
 * English words in lower case that carry grammar rather than meaning, including question words, and the parts into
 * which words with apostrophes are split (`isn't` → `isn`, `t`). `not` and `no` are not included, since they change
 * what a memory says; but of `isn't` nothing is left. Chinese question words are in `CJK_GRAMMAR` of
 * `retrieve/query-words.ts`.
 */
export const STOP_WORDS: ReadonlySet<string> = new Set(
  `a an the this that these those
   i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers
   herself it its itself they them their theirs themselves one
   am is are was were be been being do does did doing done have has had having
   will would shall should can could may might must ought
   and or but if then else than so because as until while although though whether
   of at by for with about against between into through during before after above below to from up down in out on off
   over under again further within without upon among via per onto toward towards
   who whom whose what which when where why how whatever whichever whoever
   here there all any both each few more most other some such only own same too very just also ever even still yet
   let lets get gets got please tell know
   s t d ll re ve m isn aren wasn weren doesn didn hasn haven hadn wouldn couldn shouldn mustn ain`
    .split(/\s+/)
    .filter((word) => word !== ''),
);
