import { START } from '../engine-fixture.ts';
import { COUNTS, HOUR, USERS as OWNERS } from './deeds.ts';

/** One request to an operation. Names in braces stand for ids, which differ between worlds (`World.ids`). */
export interface Ask {
  /** Values of the parameters in the path, by name. */
  readonly params?: Readonly<Record<string, string>>;
  /** The query string, encoded. */
  readonly query?: string;
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
}

/** How an operation is asked by the bound key. */
export interface Operation {
  readonly asks: readonly Ask[];
  /**
   * True if the reply rests on scores, and so on the words of the whole tenant (SECURITY.md). If the words differ, only
   * its status is compared, and that it names nothing hidden.
   */
  readonly isRanked?: true;
  /** True if the answer strengthens what it returns; with other words, that would be something else. */
  readonly reinforces?: true;
  /**
   * True if a page may be short, or empty, and yet not be the last one (docs/guides/lists.md): then pages are compared
   * together, and not where they end.
   */
  readonly hasShortPages?: true;
}

const numbered = (letters: string, count: number) => Array.from({ length: count }, (_, n) => `{${letters}${n}}`);
const MEMORIES = [...numbered('v', COUNTS.seen), '{in}', ...numbered('h', 4), '{absent}'];
const FEW = ['{v0}', '{v1}', '{v5}', '{in}', '{h0}', '{h1}', '{absent}'];
const DOCUMENTS = [...numbered('vd', COUNTS.documents), ...numbered('hd', COUNTS.documents), '{absent}'];
const JOBS = ['{vj0}', '{vj3}', '{vdj0}', '{hj0}', '{hj3}', '{hdj0}', '{hcj0}', '{absent}'];
const RECALLS = ['{vr0}', '{vr1}', '{hr0}', '{hr1}', '{absent}'];
const USERS = [...OWNERS.filter((user) => user !== ''), 'cara'];

const plain: Operation = { asks: [{}] };
const each = (values: readonly string[], ...queries: string[]): Operation => ({
  asks: values.flatMap((id) => (queries.length === 0 ? [''] : queries).map((query) => ({ params: { id }, query }))),
});
const queries = (...list: string[]): Operation => ({ asks: list.map((query) => ({ query })) });
const bodies = (...list: object[]): Operation => ({ asks: list.map((body) => ({ body })) });
const inShortPages = (operation: Operation): Operation => ({ ...operation, hasShortPages: true });
const OF_USERS = ['', ...USERS.map((user) => `user_id=${user}`), 'user_id='];
const withUsers = (query: string) => OF_USERS.map((user) => [query, user].filter((part) => part !== '').join('&'));
const PAIRS = [
  { src: '{v0}', dst: '{h0}' },
  { src: '{h0}', dst: '{v0}' },
  { src: '{h0}', dst: '{h1}' },
  { src: '{v0}', dst: '{v1}' },
  { src: '{absent}', dst: '{v1}' },
];

const QUESTION = { query: 'when is the ferry of Marta Lindqvist inspected?', reinforce: false };
const LOOKS = [
  {},
  { valid: START + 5 * HOUR, recorded: START + 12 * HOUR },
  { recorded: START + 20 * HOUR },
  { recorded: START + 40 * HOUR },
].map((as_of) => (Object.keys(as_of).length === 0 ? {} : { as_of }));
const QUESTIONS = [
  ...LOOKS.flatMap((look) => [
    { ...QUESTION, ...look, explain: true },
    { ...QUESTION, ...look, min_score: 0, k: 100, profile: 'activation', explain: true },
  ]),
  { ...QUESTION, min_score: 0, k: 50, deep_recall: true, expand: ['neighbours', 'document', 'sources', 'relations'] },
  { ...QUESTION, min_score: 0, include: ['contradicted'], cut: 'relative', format: 'prompt' },
  {
    ...QUESTION,
    query: 'who likes the ledger?',
    include_episodes: true,
    max_hops: 3,
    entity_graph: true,
    min_score: 0,
  },
  { ...QUESTION, query: 'Kestrel Ltd', max_hops: 0, entity_graph: false, profile: 'fusion', explain: true },
  { ...QUESTION, query: 'hidden line', rerank: 'none', min_score: 0, filters: { tags: ['home'] } },
  {
    ...QUESTION,
    query: 'ferry',
    filters: { statuses: ['active', 'superseded', 'contradicted', 'archived'] },
    min_score: 0,
  },
  { ...QUESTION, query: 'archive', user_id: 'ana', top_k: { knowledge: 3, episodes: 2 }, min_score: 0 },
  { ...QUESTION, query: 'printer', filters: { documents: ['{hd0}'] } },
  { ...QUESTION, query: 'printer', filters: { documents: ['{vd0}'] }, per_document: 1 },
];
const FILTERS = [
  {},
  { filters: { tags: ['home'] } },
  { filters: { statuses: ['active', 'superseded', 'contradicted', 'archived'] } },
  { filters: { metadata: { team: 'red' } } },
  { filters: { files: ['docs/ferry.md'] } },
  { filters: { external_ids: ['hidden-0', 'hidden-1', 'shown-0', 'shown-1', 'shown-2'] } },
  { filters: { documents: ['{hd0}', '{vd0}'] } },
  { filters: { sessions: ['trip', 'hidden'] } },
  { filters: { sectors: ['semantic'] }, user_id: 'ana' },
  { user_id: 'cara' },
  { filters: { namespace: '' } },
];

let rpcId = 0;
const rpc = (method: string, params: object): Ask => ({
  body: { jsonrpc: '2.0', id: (rpcId += 1), method, params },
  headers: { accept: 'application/json, text/event-stream' },
  query: 'tools=feedback,forget,search_fetch',
});
const tool = (name: string, args: object) => rpc('tools/call', { name, arguments: args });
const SINCE = new Date(START).toISOString();
const MCP_READS = [
  rpc('tools/list', {}),
  rpc('resources/list', {}),
  rpc('resources/templates/list', {}),
  rpc('prompts/list', {}),
  ...FEW.flatMap((id) => [
    tool('get_memory', { id, include: ['links', 'history'] }),
    tool('fetch', { id }),
    rpc('resources/read', { uri: `cairn://memory/${id}` }),
  ]),
  ...DOCUMENTS.map((id) => rpc('resources/read', { uri: `cairn://document/${id}` })),
  tool('list_recent', { limit: 5 }),
  tool('list_recent', { limit: 100 }),
  tool('list_recent', { session_id: 'trip' }),
  tool('what_changed', { since: SINCE }),
  tool('find_entities', { name: '' }),
  tool('find_entities', { name: 'Mar' }),
  tool('find_entities', { name: 'Marta Lindqvist' }),
  rpc('resources/read', { uri: 'cairn://entity/lisbon' }),
  rpc('resources/read', { uri: 'cairn://profile' }),
  rpc('prompts/get', { name: 'context' }),
];
const MCP_RANKS = [
  tool('recall', { query: 'ferry', min_score: 0 }),
  tool('search', { query: 'who likes the ledger?' }),
  tool('explain_recall', { query: 'ferry', id: '{v0}' }),
  tool('explain_recall', { query: 'ferry', id: '{h0}' }),
  tool('what_changed', { since: SINCE, topic: 'ferry' }),
  rpc('prompts/get', { name: 'recall', arguments: { topic: 'ferry' } }),
];
const MCP_WRITES = [
  tool('remember', { content: 'Remembered by a tool.', tags: ['new'] }),
  ...['{v2}', '{h2}', '{absent}'].map((id) => tool('update_memory', { id, tags: ['changed'], mode: 'correct' })),
  ...['{v3}', '{h3}', '{absent}'].map((id) =>
    tool('update_memory', { id, content: 'A newer text.', mode: 'supersede' }),
  ),
  ...['{h4}', '{absent}'].map((id) => tool('forget', { id })),
  tool('ingest', { text: 'A page of a tool.', title: 'Page' }),
  ...['{hr0}', '{absent}'].map((id) => tool('rate_recall', { recall_id: id, verdict: 'used', ids: ['{v0}'] })),
];

/** How operations are asked that read, by name. An operation that is in no table fails the test. */
export const READS: Readonly<Record<string, Operation>> = {
  getBatchReceipt: each(['{vb0}', '{hb0}', '{absent}'], 'l=1'),
  listDocuments: queries(
    ...withUsers(''),
    'l=1',
    'external_id=shown-page-0',
    'external_id=hidden-page-0',
    'ids={hd0}',
    'ids={vd0}',
    'session_id=trip',
    'state=ready',
  ),
  getDocument: each(DOCUMENTS, '', 'user_id=ana'),
  getDocumentContent: each(DOCUMENTS),
  listChunks: each(DOCUMENTS, 'l=1'),
  getDocumentReceipt: each(DOCUMENTS, 'l=1'),
  watchDocument: each(DOCUMENTS),
  diffMemories: queries(
    `from=${START}`,
    `from=${START}&limit=3`,
    `from=${START}&axis=valid`,
    `from=${START + 20 * HOUR}&to=${START + 30 * HOUR}`,
    `from=${START + 25 * HOUR}&user_id=ana`,
    `from=${START}&tag=home`,
    `from=${START}&session_id=trip`,
    `from=${START}&faded_below=0.9`,
    `from=${START}&format=digest`,
  ),
  listRecalls: inShortPages(queries('limit=1', 'limit=100', 'user_id=ana')),
  listServers: plain,
  listContradictions: queries(...withUsers(''), 'limit=1'),
  listNearDuplicates: queries(...withUsers('min_similarity=0.5'), 'limit=1', 'limit=2&min_similarity=0.5'),
  listLinks: each(MEMORIES, '', 'user_id=ana'),
  pageMemories: bodies(
    ...FILTERS.flatMap((filter) => [{ ...filter, limit: 3 }, filter]),
    ...LOOKS.map((look) => ({ ...look, limit: 3 })),
    ...['event_time', 'salience', 'last_seen_at', 'updated_at'].map((order_by) => ({
      order_by,
      order: 'asc',
      limit: 2,
    })),
  ),
  listMemories: queries(
    ...withUsers('l=4'),
    'l=100',
    'sector=semantic',
    'written_by={adminKey}',
    'written_by={ownKey}',
  ),
  getMemory: each(MEMORIES, '', 'user_id=ana'),
  getHistory: each(MEMORIES, 'l=1', 'l=100'),
  getTimeline: each(MEMORIES, '', 'before=3&after=0', 'session=any', 'session=same'),
  listMemoriesOfUser: each(USERS, 'l=4'),
  listUsers: inShortPages(queries('', 'limit=1', 'prefix=c', 'user_id=ana')),
  listSessions: inShortPages(queries('user_id=', ...withUsers('limit=1').slice(1))),
  listTypes: inShortPages(queries(...withUsers('limit=1'))),
  listTags: inShortPages(queries(...withUsers(''), 'limit=1', 'limit=2&prefix=h')),
  getNeighbourhood: each(MEMORIES, 'hops=3', 'hops=2&limit=3'),
  getUserGraph: each(USERS, '', 'limit=3'),
  getItem: queries(
    ...[0, 1].flatMap((n) =>
      ['settings', 'settings.editor', 'private'].flatMap((namespace) =>
        ['shown', 'hidden'].flatMap((key) => withUsers(`key=${key}-${n}&namespace=${namespace}`)),
      ),
    ),
  ),
  listItems: bodies(
    { limit: 1 },
    {},
    ...USERS.map((user_id) => ({ user_id })),
    { namespace: 'settings', value: { theme: 'dark' } },
    { namespace: 'private' },
  ),
  listNamespaces: inShortPages(queries(...withUsers('limit=1'), 'prefix=private', 'max_depth=1', 'suffix=editor')),
  readLog: {
    asks: ['trip', 'other'].flatMap((id) =>
      withUsers('limit=1')
        .slice(1)
        .map((query) => ({ params: { id }, query })),
    ),
  },
  getUserSummary: each(USERS),
  getStoreItem: queries(
    ...['shown-0', 'hidden-0'].flatMap((key) => withUsers(`namespace=settings&key=${key}&refresh_ttl=false`)),
  ),
  searchStoreItems: bodies(
    ...USERS.map((user_id) => ({ user_id, limit: 50 })),
    { limit: 1, offset: 1 },
    { filter: { theme: 'dark' }, namespace_prefix: ['settings'] },
  ),
  listStoreNamespaces: bodies({}, { user_id: 'ana', limit: 1, offset: 1 }, { prefix: ['private'] }, { max_depth: 1 }),
  getLangGraphConfig: plain,
  listEntities: queries(...withUsers('l=2'), 'q=Mar', 'q=kest', 'l=100'),
  getEntity: {
    asks: ['lisbon', 'marta%20lindqvist', 'kestrel%20ltd', 'nobody'].flatMap((name) =>
      OF_USERS.map((query) => ({ params: { name }, query })),
    ),
  },
  listEvents: queries('limit=5', 'limit=1000', 'user_id=ben', 'kinds=memory.deleted', 'cursor=latest'),
  listStandingQueries: queries(...withUsers('l=1')),
  getStandingQuery: each(['{vs0}', '{hs0}', '{absent}']),
  listStandingAnswers: each(['{vs0}', '{hs0}', '{absent}'], 'l=2'),
  listWebhooks: queries(...withUsers('l=1')),
  getWebhook: each(['{vw0}', '{hw0}', '{absent}']),
  listDeliveries: each(['{vw0}', '{hw0}', '{absent}'], 'l=2'),
  listConsolidations: queries(...withUsers('l=1'), 'job_id={vcj0}', 'job_id={hcj0}'),
  callMcp: { asks: MCP_READS },
  callMcpOfUser: { asks: MCP_READS.map((ask) => ({ ...ask, params: { user_id: 'ana' } })) },
  getJob: each(JOBS),
  watchJob: each(JOBS),
  getRetrievalDefaults: plain,
  listJobs: queries('l=2', 'l=100', 'state=done'),
  getStats: plain,
  listSectors: plain,
  getPrivacyPolicy: plain,
};

const RECALLED: Readonly<Record<string, Operation>> = {
  queryMemories: bodies(...QUESTIONS),
  explainMemory: bodies(
    ...FEW.flatMap((memory_id) => [
      { ...QUESTION, memory_id },
      { ...QUESTION, memory_id, min_score: 0.4, query: 'who likes the ledger?', deep_recall: true },
      { ...QUESTION, memory_id, as_of: { recorded: START + 30 * HOUR } },
      { ...QUESTION, memory_id, include: ['contradicted'], filters: { tags: ['home'] } },
    ]),
  ),
  diffMemories: queries(`from=${START}&topic=ferry`),
  queryFederation: bodies({ query: 'ferry', tenants: ['default'], min_score: 0 }),
  listRecalls: inShortPages(queries(...['{v0}', '{v1}', '{h0}', '{absent}'].map((id) => `memory_id=${id}`))),
  getRecall: each(RECALLS),
  replayRecall: {
    asks: RECALLS.flatMap((id) => [
      { params: { id }, body: {} },
      { params: { id }, body: { state: 'then', profile: 'activation', explain: true } },
      { params: { id }, body: { state: 'now', query: 'printer', min_score: 0 } },
    ]),
  },
  searchStoreItems: bodies({ query: 'dark theme', refresh_ttl: false }),
  callMcp: { asks: MCP_RANKS, reinforces: true },
  callMcpOfUser: { asks: MCP_RANKS.map((ask) => ({ ...ask, params: { user_id: 'ana' } })), reinforces: true },
  queryMemoriesAgain: { ...bodies({ query: 'ferry', k: 5 }, { query: 'who likes the ledger?' }), reinforces: true },
  retrieveNodeMemories: { ...bodies({ node: 'observe', query: 'ferry' }), reinforces: true },
};
/** How operations are asked whose replies rest on the words of the whole tenant, by name. */
export const RANKED: Readonly<Record<string, Operation>> = Object.fromEntries(
  Object.entries(RECALLED).map(([name, operation]) => [name, { ...operation, isRanked: true as const }]),
);

/** How operations are asked that write, in this order, by name. */
export const WRITES: Readonly<Record<string, Operation>> = {
  regenerateUserSummary: each(USERS),
  giveRecallFeedback: {
    asks: RECALLS.map((id) => ({ params: { id }, body: { verdict: 'used', memory_ids: ['{h0}'] } })),
  },
  addMemory: bodies(
    { content: 'Added by the key.' },
    { content: 'Added with an old one.', supersedes: '{h0}' },
    { content: 'Added with a newer one.', supersedes: '{absent}' },
    { content: 'Added with an external id.', external_id: 'new-one' },
  ),
  addMemoryAgain: bodies({ content: 'Added by the other route.' }),
  addMemories: bodies({ items: [{ content: 'Added in a batch.' }, { content: 'Added too.', supersedes: '{h1}' }] }),
  ingestDocument: bodies({ content_type: 'md', text: '# New\n\nA new page.', external_id: 'new-page' }),
  ingestPage: bodies({ url: 'https://example.com/' }),
  ingestDocuments: bodies({ items: [{ content_type: 'md', text: '# Other\n\nAnother new page.' }] }),
  replaceDocument: {
    asks: ['{vd0}', '{hd0}', '{absent}'].map((id) => ({
      params: { id },
      body: { content_type: 'md', text: '# Replaced\n\nIt is.' },
    })),
  },
  cancelDocument: each(DOCUMENTS),
  linkMemories: bodies(...PAIRS.map((pair) => ({ ...pair, type: 'supports' }))),
  unlinkMemories: bodies(...PAIRS.flatMap((pair) => ['supports', 'mentions'].map((type) => ({ ...pair, type })))),
  supersedeMemory: bodies(...PAIRS.map(({ src, dst }) => ({ old_id: src, new_id: dst }))),
  contradictMemories: bodies(...PAIRS.map(({ src, dst }) => ({ a: src, b: dst, winner: dst }))),
  reinforceMemory: bodies(...FEW.map((id) => ({ id, boost: 0.1 }))),
  patchMemory: {
    asks: FEW.flatMap((id) => [
      { params: { id }, body: { metadata: { seen: true } } },
      { params: { id }, body: { title: 'New' }, headers: { 'if-match': '"1"' } },
    ]),
  },
  putItem: bodies({ namespace: 'settings', key: 'own', value: 1 }, { namespace: 'settings', key: 'own', value: 2 }),
  putStoreItem: bodies({ namespace: ['settings'], key: 'stored', value: { theme: 'own' } }),
  deleteItem: queries('namespace=settings&key=own', 'namespace=settings&key=none'),
  deleteStoreItem: bodies({ namespace: ['settings'], key: 'stored' }, { namespace: ['settings'], key: 'none' }),
  moveNamespace: { asks: ['none', 'settings.editor'].map((name) => ({ params: { name }, body: { to: 'moved' } })) },
  storeNodeOutput: bodies(
    { node: 'observe', content: 'The node saw it.' },
    { node: 'plan', content: 'Plan.', reflective: true },
  ),
  storeGraphReflection: bodies(
    { content: 'It reflects.', context_ids: ['{h0}'] },
    { content: 'It reflects.', context_ids: ['{absent}'] },
    { content: 'It reflects.' },
  ),
  getGraphContext: bodies({}, { user_id: 'ana' }),
  retrieveNodeMemories: bodies({ node: 'observe' }),
  appendToLog: { asks: ['trip', 'other'].map((id) => ({ params: { id }, body: { user_id: 'ana', items: ['new'] } })) },
  replaceEndOfLog: { asks: [{ params: { id: 'trip' }, body: { user_id: 'ana', from: 0, items: ['newer'] } }] },
  popFromLog: { asks: [{ params: { id: 'trip' }, body: { user_id: 'ana' } }] },
  clearLog: { asks: ['trip', 'other'].map((id) => ({ params: { id }, query: 'user_id=ana' })) },
  createStandingQuery: bodies({ query: 'ferry', user_id: 'ana' }, { query: 'ferry' }),
  deleteStandingQuery: each(['{hs0}', '{vs0}', '{absent}']),
  createWebhook: bodies({ url: 'https://example.com/own', user_id: 'ana' }),
  retryDeliveries: each(['{hw0}', '{vw0}', '{absent}']),
  deleteWebhook: each(['{hw0}', '{vw0}', '{absent}']),
  reflect: bodies({ user_id: 'ana' }, {}),
  consolidate: bodies({ dry_run: true }, { user_id: 'ana', dry_run: true }, { user_id: 'ana' }),
  undoConsolidation: each(['{vcj0}', '{hcj0}', '{absent}']),
  callMcp: { asks: MCP_WRITES },
  callMcpOfUser: { asks: MCP_WRITES.map((ask) => ({ ...ask, params: { user_id: 'ana' } })) },
  deleteDocument: each(['{hd0}', '{vd1}', '{absent}']),
  deleteMemory: each(['{h1}', '{h2}', '{v1}', '{absent}']),
  deleteNamespace: { asks: ['private', 'moved', 'none'].map((name) => ({ params: { name } })) },
};
/** How operations are asked that erase so much that they come last, by name. */
export const ERASURES: Readonly<Record<string, Operation>> = {
  deleteMemories: bodies(
    { tags: ['home'] },
    { session_id: 'trip' },
    { session_id: 'hidden' },
    { user_id: 'ana', tags: ['club'] },
  ),
  deleteMemoriesOfUser: each(USERS),
};

/**
 * Operations that are not asked, by name, each with the reason. All others that no table names must refuse every key
 * that is bound, or needs the role `admin`.
 */
export const NOT_ASKED: Readonly<Record<string, string>> = {
  ...Object.fromEntries(['getConsole', 'getConsoleFile', 'getDocsPage', 'getDocsFile'].map((name) => [name, 'a file'])),
  getDescription: 'the same for everybody',
  getResource: 'the same for everybody',
  getMcpResource: 'the same for everybody',
  getMcpResourceOfUser: 'the same for everybody',
  getConsoleSession: 'of a browser',
  openConsoleSession: 'of a browser',
  closeConsoleSession: 'of a browser',
  beginProviderSignIn: 'of a browser',
  endProviderSignIn: 'of a browser',
  getHealth: 'of the service, with nothing of a tenant',
  getReadiness: 'of the service, with nothing of a tenant',
};
