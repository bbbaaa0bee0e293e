/** Values from which requests are made: a few that meet each other often, and those at which engines differ. */
import fc from 'fast-check';
import { START } from '../engine-fixture.ts';

/** A value that a reply has had: an id, a cursor, a token. Each service has its own in its place. */
export interface Seen {
  readonly $seen: string;
  readonly no: number;
}

export const seen = (kind: string): fc.Arbitrary<Seen> => fc.record({ $seen: fc.constant(kind), no: fc.nat(20) });

/** Text that stands in a JSON body without quotation marks: a number that JavaScript would write otherwise. */
const asWritten = (number: string) => `@raw:${number}`;

/** Makes a choice in which each of the first values is as frequent as all of the rest together. */
const mostly = <T>(often: readonly T[], rest: readonly T[]): fc.Arbitrary<T> =>
  fc.oneof(...often.map((value) => ({ weight: 3, arbitrary: fc.constant(value) })), {
    weight: 1,
    arbitrary: fc.constantFrom(...rest),
  });

/** Short texts with characters that mean something to one of the engines, or sort in another way. */
export const EDGES = [
  '%',
  '_',
  'a%b',
  'a_b',
  '\\',
  'a\\b',
  "it's",
  '"q"',
  'A',
  'Ä',
  'é',
  'e\u0301',
  'ß',
  'İ',
  '🚢',
  '\u{10ffff}',
  '\u{10fffe}0',
  '\uffff',
  '\ufffe',
  '\u0000',
  'a\u0000b',
  '\\u0000',
  '\ud800',
  '',
  ' ',
  '\t',
  'null',
  '0',
  '10',
  '9',
  '1e3',
  '[1]',
  '{"a":1}',
  'a.b',
  'a/b',
  '*',
  'x'.repeat(128),
  'é'.repeat(256),
] as const;

const CONTENTS = [
  'Anna moved from Berlin to Hamburg in March. She works at the harbour.',
  'Anna lives in Hamburg now.',
  'Anna does not live in Hamburg.',
  'Anna works at the harbour in Hamburg, and takes the ferry to Altona.',
  'The deploy of the billing service failed because the certificate had expired.',
  'To roll back, run `make rollback` in src/billing.ts and tell the on-call engineer.',
  'I was so happy at the concert in Hamburg yesterday!',
  'The ferry to Altona leaves at noon 🚢, says Zoë.',
  'Meeting with Bob Miller on 2026-01-07 about the budget of 3,000 euros.',
  '灯台守は毎日船を数える。',
  'The lighthouse keeper counts ships. The lighthouse keeper counts ships.',
  'ship',
  '!!!',
  'Words \u0000 around a zero.',
  'Émile aime le café; emile aime le cafe.',
  'a_b a%b a\\b C++ node.js v1.2.3 10.0.0.1',
  `${'The harbour is full of ships and gulls. '.repeat(90)}Anna counts them.`,
];

const content = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom(...CONTENTS) },
  {
    weight: 4,
    arbitrary: fc.nat(30).map((no) => `Note ${no}: the lighthouse keeper counts ${no * 7} ships in Hamburg.`),
  },
  { weight: 1, arbitrary: fc.constantFrom(...EDGES) },
);

const query = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom('Where does Anna live?', 'ships', 'harbour Hamburg', 'ferry to Altona') },
  { weight: 2, arbitrary: fc.constantFrom('Why did the deploy of "the billing service" fail? Who is told?', '灯台守') },
  { weight: 1, arbitrary: content },
);

const DAY = 86_400_000;
export const time = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: -40, max: 40 }).map((hours) => START + hours * 3_600_000) },
  { weight: 2, arbitrary: fc.integer({ min: -60, max: 60 }).map((days) => START + days * DAY) },
  {
    weight: 2,
    arbitrary: fc.constantFrom<number | string>(
      START,
      START + 1,
      START - 1,
      -62_135_596_800_000,
      253_402_300_799_999,
      0,
      -1,
      10_000_000_000,
      '2026-01-05',
      '2026-01-05T00:00:00.0005+01:00',
      '0001-01-01',
      '9999-12-31T23:59:59.999Z',
    ),
  },
);

const NUMBERS: readonly unknown[] = [
  ...[1.5, -1, 1e308, -1e308, 5e-324, 2 ** 53, 1e21, 1e-7, 0.1 + 0.2],
  ...['-0', '1.0', '1E2', '9007199254740993', '-9223372036854775809', '1e400'].map(asWritten),
];
const COMPOSED: readonly unknown[] = [
  [],
  [1, 2],
  [2, 1],
  [null],
  {},
  { a: 1, b: null },
  { b: null, a: 1 },
  [['\u0000']],
];
const PLAIN: readonly unknown[] = [0, 1, 2, 'a', 'b', null, true, false];

/** Values of JSON at which engines may differ. */
export const EDGE_VALUES: readonly unknown[] = [...PLAIN, ...NUMBERS, ...EDGES, ...COMPOSED];

const values: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...PLAIN) },
  { weight: 3, arbitrary: fc.constantFrom(...NUMBERS) },
  // One engine sorts U+0000 in another way (`edges.ts`).
  { weight: 2, arbitrary: fc.constantFrom<unknown>(...EDGES.filter((edge) => !edge.includes('\0'))) },
  { weight: 2, arbitrary: fc.constantFrom(...COMPOSED) },
);

const key = mostly(['n', 's', 'deep'], ['a.b', 'é', '$n', '', '0', 'length', '__proto__', '\u0000', 'x"y', 'sector']);
const fields = fc.dictionary(key, values, { maxKeys: 3 });
const condition = fc.oneof(
  values,
  fc.dictionary(fc.constantFrom('$gt', '$gte', '$lt', '$lte', '$eq', '$ne'), values, { minKeys: 1, maxKeys: 2 }),
  fc.dictionary(fc.constantFrom('$in', '$nin'), fc.array(values, { maxLength: 3 }), { minKeys: 1, maxKeys: 2 }),
  fc.record({ $exists: fc.boolean() }),
  fc.record({ $like: values }),
);
const conditions = fc.dictionary(key, condition, { minKeys: 1, maxKeys: 2 });

const label = mostly(['home', 'work', 'übung'], EDGES);
const namespace = mostly(
  ['settings', 'settings.editor', 'settings-x', 'plans.2026', ''],
  ['a.b', 'é', 'a_b', '%', 'a..b'],
);
const user = mostly(['ana', 'ana', 'bob', ''], ['Ana', 'änne', 'a_a', '%', 'nobody', 'a\\b', 'x'.repeat(257)]);
const session = mostly(['s1', 's2'], EDGES);

/** Tells how the fields of requests are filled that have a meaning beyond their schema, by their names. */
export const FIELDS: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  content,
  query,
  q: fc.oneof(query, fc.constantFrom('an', 'Ham', '', '%')),
  topic: query,
  text: content,
  data: fc.constantFrom(
    '# Runbook\n\nRestart the queue first.\n\n## Rollback\n\nRun the rollback job, then tell Anna.\n',
    '# Runbook\n\nRestart the queue first.\n\n## Rollback\n\nRun the rollback job, then tell Bob.\n',
    'name,city\nAnna,Hamburg\nBob,Berlin\n',
    '<html><head><title>Ships</title></head><body><h1>Ships</h1><p>The ferry leaves at noon.</p></body></html>',
    '[{"a":1},{"b":"Anna lives in Hamburg"}]',
    '',
    'a\u0000b',
    CONTENTS.join('\n\n'),
  ),
  content_type: mostly(
    ['text', 'md'],
    ['html', 'csv', 'json', 'application/x-nothing', 'pdf', 'text/plain; charset=utf-8'],
  ),
  file_name: mostly(['runbook.md', 'notes.txt'], ['a/b/é.csv', 'x', '']),
  encoding: mostly(['utf8'], ['base64']),
  url: fc.constantFrom('http://127.0.0.1:9/hook', 'https://127.0.0.1:9/other', 'ftp://x', 'http://10.0.0.1/a b'),
  user_id: user,
  users: fc.array(user, { maxLength: 3 }),
  session_id: session,
  sessions: fc.array(session, { maxLength: 3 }),
  graph_id: session,
  node: mostly(['plan', 'act', 'observe'], ['reflect', 'x', 'É']),
  node_id: mostly(['plan', 'act', 'observe'], ['reflect', 'x', 'É']),
  tags: fc.array(label, { maxLength: 3 }),
  tag: label,
  type: mostly(['note', 'fact'], EDGES),
  types: fc.array(mostly(['note', 'fact'], EDGES), { maxLength: 3 }),
  files: fc.array(mostly(['src/billing.ts', 'README.md'], EDGES), { maxLength: 3 }),
  entities: fc.array(mostly(['Anna', 'Hamburg', 'anna'], EDGES), { maxLength: 3 }),
  external_id: mostly(['ext1', 'ext2', 'ext3'], EDGES),
  external_ids: fc.array(mostly(['ext1', 'ext2', 'ext3'], EDGES), { maxLength: 3 }),
  title: mostly(['Runbook', 'Ships'], EDGES),
  gist: mostly(['About Anna'], EDGES),
  prefix: mostly(['', 's', 'a'], [...EDGES, 'settings', 'settings.*']),
  suffix: mostly(['', 'editor'], ['*', 's', '2026', 'a..b']),
  namespace,
  to: fc.oneof(namespace, time),
  key: mostly(['k1', 'k2'], EDGES),
  metadata: fields,
  value: fields,
  filter: conditions,
  items: fc.array(values, { maxLength: 3 }),
  expected_suffix: fc.array(values, { maxLength: 2 }),
  operation_id: mostly(['op1', 'op2'], EDGES),
  expected_total: fc.nat(4),
  config: fc.constant({}),
  k: mostly([1, 3, 10], [200, 0]),
  l: mostly([1, 2, 50], [1000, 0]),
  u: mostly([0, 1], [3, 100_000_000]),
  limit: mostly([1, 2, 50], [200, 0]),
  offset: mostly([0, 1], [50]),
  min_score: mostly([0, 0], [0.2, 1]),
  token_budget: mostly([50, 300], [1, 1_000_000]),
  tenant: mostly(['default'], ['t1', 'nowhere']),
  tenants: fc.array(mostly(['default'], ['t1', 'nowhere']), { minLength: 1, maxLength: 2 }),
  name: mostly(['e1', 'e2'], ['É', '']),
  expected: fc.array(fc.constantFrom('Anna', 'Hamburg', 'x'), { maxLength: 2 }),
  forbidden: fc.array(fc.constantFrom('Bob', 'gulls'), { maxLength: 2 }),
  ids: fc.oneof(seen('document'), fc.constant('x,y')),
  written_by: seen('key'),
  key_id: seen('key'),
  before: fc.oneof(fc.integer({ min: 1, max: 20 }), seen('memory')),
  kinds: fc.constantFrom('memory.stored', 'memory.ready,memory.deleted', 'x'),
  map_user: fc.constantFrom(['ana=bob'], ['ana='], ['x']),
};

/** Fields of filters, which have other forms than the fields of the same names elsewhere. */
export const FILTER_FIELDS: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  metadata: conditions,
  value: conditions,
  written_by: fc.array(seen('key'), { minLength: 1, maxLength: 2 }),
};

/** Kinds of what fields name that hold the ids of something. */
export const KINDS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    ['memory_id', 'memory_ids', 'src', 'dst', 'old_id', 'new_id', 'a', 'b', 'winner', 'supersedes', 'context_ids'].map(
      (name) => [name, 'memory'],
    ),
  ),
  documents: 'document',
  document_id: 'document',
  job_id: 'job',
  recall_id: 'recall',
  erasure_id: 'erasure',
  receipt: 'receipt',
};

/** Kinds of what the field `id` of a path or a reply names, by the first part of the path. */
export const KIND_OF_PATH: Readonly<Record<string, string>> = {
  documents: 'document',
  receipts: 'receipt',
  recalls: 'recall',
  jobs: 'job',
  standing: 'standing',
  webhooks: 'webhook',
  learned: 'learned',
  erasures: 'erasure',
  admin: 'key',
  tenants: 'tenant',
};

/** What parameters of paths name that are no ids, by the first part of the path. */
export const NAMES_IN_PATHS: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  users: user,
  sessions: session,
  mcp: user,
  namespaces: namespace,
  evals: FIELDS['name']!,
  federation: FIELDS['name']!,
  entities: mostly(['Anna', 'hamburg', 'HAMBURG'], EDGES),
  tenants: fc.constantFrom('t1', 't2'),
};

/** Names of fields whose values above are whole lists. */
export const LISTS: ReadonlySet<string> = new Set(
  [
    'users',
    'sessions',
    'tags',
    'types',
    'files',
    'entities',
    'external_ids',
    'items',
    'expected_suffix',
    'tenants',
  ].concat(['expected', 'forbidden', 'map_user']),
);
