/** Texts of the page Ask. */
import { many } from './many.ts';

export const ask = {
  title: 'Ask',
  about:
    'Ask as your agent would, and see why each memory came back. Looking changes nothing: no memory is reinforced.',
  question: 'Question',
  placeholder: 'When do we deploy to staging?',
  action: 'Ask',
  settings: 'More settings',
  views: 'Views of the answer',
  tabs: { hits: 'Answer', trace: 'Stages', compare: 'Compare', code: 'As code' },
  emptyTitle: 'What do you want to know?',
  empty:
    'Type a question above. The answer shows each memory with its score taken apart, and the way on which it was ' +
    'found.',
  beginTitle: 'Nothing is remembered yet',
  begin:
    'Add a memory: a sentence about anything. Then ask about it above in words of your own, and see under the answer ' +
    'why it came back.',
  beginReader: 'Memories appear here once somebody adds them; this key may only read.',
  dropDocument: 'Drop a document',
  nothingTitle: 'No memory answers this',
  nothing:
    'Nothing is above the floor. Lower the floor under “More settings”, or name on the right the memory that you ' +
    'expected: the console says what keeps it out.',
  hit: (rank: number) => `Match ${rank}`,
  rawScore: (score: string) => `Raw score ${score}`,
  scoreOf: (score: string, parts: string) => `Score ${score}, made of ${parts}`,
  factors: {
    rerank: 'by the reranker',
    session: 'from its session',
    status: 'by its status',
    contradicted: 'contradicted',
    superseded: 'superseded',
    consolidated: 'gathered into another',
    model: 'by the language model',
  } as Readonly<Record<string, string>>,
  supersedes: 'in place of a superseded memory',
  similar: (number: number) => `${number} more say nearly the same`,
  pages: (from: number, to: number) => (from === to ? `page ${from}` : `pages ${from}–${to}`),
  chunk: (number: number, of: number) => `part ${number} of ${of}`,
  byWords: 'Words',
  byVector: 'Vector',
  byLink: 'Link',
  byOther: 'Way',
  words: (rank: number, bm25: string, coverage: string) => `rank ${rank}, BM25 ${bm25}, coverage ${coverage}`,
  vector: (rank: number, cosine: string, part: number) =>
    `rank ${rank}, cosine ${cosine}, part ${part + 1} of the text`,
  activation: (value: string, hops: number) => `activation ${value} after ${many(hops, 'link')}`,
  features: 'Features',
  rerank: 'Reranker',
  degraded: (reasons: readonly string[]) => `This answer may be worse than it should be: ${reasons.join(', ')}.`,
  floor: (below: number, floor: string, best: number | null) =>
    `${many(below, 'memory', 'memories')} below the floor of ${floor}` +
    `${best === null ? '' : `, the best with ${best.toFixed(2)}`}.`,
  noFloor: 'Show them',
  cut: (left: number, mode: string) => `${many(left, 'memory', 'memories')} left out by the cut “${mode}”.`,
  traceAbout: (total: string) => `The stages in the order in which they ran, ${total} in all.`,
  stage: 'Stage',
  time: 'Time',
  share: 'Share of the time',
  in: 'In',
  out: 'Out',
  note: 'Note',
  recallId: 'This answer in the log:',
  past: 'Past answers',
  recent: 'Asked lately',
} as const;

export const why = {
  title: 'Why not this one?',
  about: 'Name a memory that you expected: some of its words, or its id.',
  find: 'Memory that was expected',
  placeholder: 'words or id',
  search: 'Find',
  none: 'No memory has these words.',
  ask: 'Why?',
  isIn: 'in the answer',
  memory: 'Memory',
  supersededBy: 'superseded by',
  rank: 'Rank',
  noCandidate: 'was no candidate',
  score: 'Score',
  matched: 'Words in it',
  inContext: 'Words around it',
  missed: 'Words it lacks',
  cosine: 'Cosine',
  failed: 'Fails',
  took: 'Took',
  remedies: 'This would return it',
  noRemedy: 'No change would return it',
  tryIt: 'Try it',
  outcomes: {
    returned: 'It is in the answer.',
    filtered: 'A filter leaves it out.',
    no_match: 'It shares neither words nor meaning with the question.',
    not_a_candidate: 'Other memories were nearer, so it was not looked at.',
    superseded: 'A newer memory takes its place.',
    below_min_score: 'Its score is below the floor.',
    below_relative_floor: 'Its score is too far below the best one.',
    not_exact: 'It does not hold enough of the question by itself.',
    document_limit: 'Other parts of its document came first.',
    near_duplicate: 'Another memory says nearly the same.',
    kind_limit: 'There were enough of its kind.',
    beyond_k: 'It comes after the last place.',
    over_budget: 'It does not fit into the token budget.',
  } as Readonly<Record<string, string>>,
} as const;

export const compare = {
  about: 'The settings above are the first; change the second here, and see what moves.',
  other: 'Second setting',
  adopt: 'Make it the first',
  same: 'Both give the same answer.',
  moved: (moved: number, of: number) => `${moved} of ${of} memories moved.`,
  first: 'First',
  second: 'Second',
  change: 'Change',
  memory: 'Memory',
  stays: 'stays',
  new: 'new',
  gone: 'gone',
} as const;

export const code = {
  mcpAt: 'The call goes to the address',
  mcpWith: 'with the header',
  mcpWithout: (fields: string) => `The tool has no ${fields}: the call leaves that out.`,
  copy: 'Copy',
  copied: 'Copied.',
  notCopied: 'The browser does not let this page copy: select the text and copy it yourself.',
} as const;
