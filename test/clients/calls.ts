/** A call of one operation of the API by a client, and what it must return. */
export interface Call {
  /** Name of the operation in the description of the API. */
  readonly call: string;
  /**
   * Fields of the request. `$name` stands for a value that an earlier call kept; `{ $file, $text }` stands for a file
   * that is uploaded.
   */
  readonly with?: object;
  /** Values of the reply that are kept for later calls: by name, the path to each value in the reply, with dots. */
  readonly keep?: Readonly<Record<string, string>>;
  /** What the reply must contain: some of its fields, a part of its text, or the names of its events. */
  readonly gives?: object | string | readonly string[];
  /** Code of the error with which the call must fail. */
  readonly fails?: string;
}

const FEBRUARY = '2026-02-01T00:00:00.000Z';

/**
 * Calls of every operation of the API, in an order in which earlier calls prepare later ones. Both clients make these
 * calls against a real server, and must get the same results.
 */
export const CALLS: readonly Call[] = [
  // Memories
  {
    call: 'addMemory',
    with: { content: 'The rollback job runs every night.', user_id: 'ana', tags: ['ops'], wait: 60_000 },
    keep: { one: 'id' },
    gives: { state: 'ready' },
  },
  {
    call: 'addMemoryAgain',
    with: { content: 'The rollback job runs every morning.', user_id: 'ana', session_id: 's1', wait: 60_000 },
    keep: { two: 'id' },
  },
  {
    call: 'addMemories',
    with: { items: [{ content: 'Ben prefers tabs to spaces.', user_id: 'ben' }, { content: '' }] },
    gives: { accepted: 1, rejected: 1 },
  },
  {
    call: 'addMemories',
    with: { items: [{ content: 'Ben prefers tabs to spaces.', user_id: 'ben' }], receipt: true },
    keep: { receipt: 'receipt_id' },
  },
  { call: 'getBatchReceipt', with: { id: '$receipt' }, gives: { merged: 1, complete: true } },
  { call: 'addMemory', with: { content: 'The job of this one is watched.', user_id: 'job' }, keep: { job: 'job_id' } },
  { call: 'addMemory', with: { content: '' }, fails: 'invalid' },
  {
    call: 'getMemory',
    with: { id: '$one', user_id: 'ana' },
    gives: { id: '$one', content: 'The rollback job runs every night.' },
  },
  { call: 'getMemory', with: { id: '$one', user_id: 'ben' }, fails: 'not_found' },
  {
    call: 'patchMemory',
    with: { id: '$one', tags: ['ops', 'night'], metadata: { team: 'infra' } },
    gives: { tags: ['ops', 'night'], metadata: { team: 'infra' }, version: 2 },
  },
  { call: 'getHistory', with: { id: '$one', l: 5 }, gives: { items: [{}] } },
  { call: 'getTimeline', with: { id: '$one', before: 1, after: 1 } },
  { call: 'reinforceMemory', with: { id: '$one' }, gives: { ok: true } },
  { call: 'listMemories', with: { user_id: 'ana', l: 1 }, gives: { items: [{ id: '$two' }] } },
  {
    call: 'pageMemories',
    with: { user_id: 'ana', filters: { tags: ['ops'] }, limit: 1 },
    gives: { items: [{ id: '$one' }] },
  },
  { call: 'listMemoriesOfUser', with: { id: 'ana' }, gives: { items: [{}, {}] } },
  { call: 'listUsers', with: { prefix: 'a' }, gives: { items: [{ name: 'ana' }] } },
  { call: 'listSessions', with: { user_id: 'ana' }, gives: { items: [{ name: 's1' }] } },
  { call: 'listTypes' },
  { call: 'listTags', with: { user_id: 'ana', limit: 10 } },
  // Questions
  {
    call: 'queryMemories',
    with: { query: 'rollback job', user_id: 'ana', k: 2 },
    keep: { recall: 'recall_id' },
    gives: { degraded: false },
  },
  {
    call: 'queryMemories',
    with: { query: 'rollback job', user_id: 'ana', format: 'prompt' },
    gives: { format: 'prompt' },
  },
  { call: 'queryMemoriesAgain', with: { query: 'rollback job', user_id: 'ana' } },
  { call: 'explainMemory', with: { query: 'rollback job', user_id: 'ana', memory_id: '$one' } },
  { call: 'diffMemories', with: { from: FEBRUARY, user_id: 'ana' } },
  { call: 'getRecall', with: { id: '$recall' } },
  { call: 'replayRecall', with: { id: '$recall', state: 'now' } },
  { call: 'giveRecallFeedback', with: { id: '$recall', verdict: 'used', memory_ids: ['$one'] } },
  { call: 'getUserSummary', with: { id: 'ana' } },
  { call: 'regenerateUserSummary', with: { id: 'ana' }, gives: { ok: true } },
  { call: 'reflect', with: { user_id: 'ana' }, fails: 'invalid' },
  // Links and names
  { call: 'linkMemories', with: { src: '$one', dst: '$two', type: 'supports', weight: 0.9 } },
  { call: 'listLinks', with: { id: '$one' } },
  { call: 'getNeighbourhood', with: { id: '$one', hops: 1 } },
  { call: 'getUserGraph', with: { id: 'ana', limit: 10 } },
  { call: 'unlinkMemories', with: { src: '$one', dst: '$two', type: 'supports' } },
  { call: 'contradictMemories', with: { a: '$one', b: '$two', winner: '$two' } },
  { call: 'listContradictions', with: { user_id: 'ana' } },
  { call: 'supersedeMemory', with: { old_id: '$one', new_id: '$two' } },
  { call: 'listEntities', with: { user_id: 'ben', q: 'be' } },
  { call: 'getEntity', with: { name: 'no/such?name', user_id: 'ben' }, fails: 'not_found' },
  // Documents
  {
    call: 'ingestDocument',
    with: {
      file: { $file: 'runbook é.md', $text: '# Rollback\n\nRun the rollback job.\n' },
      user_id: 'ana',
      tags: ['ops'],
      metadata: { team: 'infra' },
      external_id: 'x',
      wait: 60_000,
    },
    keep: { document: 'document_id' },
    gives: { file_name: 'runbook é.md', tags: ['ops'], metadata: { team: 'infra' }, state: 'ready' },
  },
  {
    call: 'ingestDocuments',
    with: { items: [{ text: 'The first of two texts.' }, { url: 'ftp://example.com/x' }] },
    gives: { accepted: 1, rejected: 1 },
  },
  {
    call: 'ingestPage',
    with: { url: 'http://127.0.0.1/secret', user_id: 'ana' },
    keep: { page: 'document_id', pageJob: 'job_id' },
    gives: { outcome: 'accepted' },
  },
  { call: 'watchDocument', with: { id: '$document' }, gives: ['state'] },
  { call: 'listDocuments', with: { external_id: 'x', user_id: 'ana' }, gives: { items: [{ id: '$document' }] } },
  { call: 'getDocument', with: { id: '$document' }, gives: { id: '$document', external_id: 'x' } },
  { call: 'getDocumentContent', with: { id: '$document' }, gives: 'Run the rollback job.' },
  { call: 'getDocumentReceipt', with: { id: '$document', l: 1 } },
  { call: 'listChunks', with: { id: '$document', l: 1 }, gives: { id: '$document', total: 1 } },
  {
    call: 'replaceDocument',
    with: { id: '$document', text: 'Other words.', content_type: 'md', external_id: 'y', wait: 60_000 },
    gives: { outcome: 'replaced', external_id: 'y' },
  },
  { call: 'cancelDocument', with: { id: '$document' }, fails: 'conflict' },
  { call: 'deleteDocument', with: { id: '$document' }, gives: { ok: true } },
  // Items, logs
  { call: 'putItem', with: { key: 'a/b?c#d', namespace: 'n', user_id: 'ana', value: { a: [1, null, 'é'] } } },
  {
    call: 'getItem',
    with: { key: 'a/b?c#d', namespace: 'n', user_id: 'ana' },
    gives: { value: { a: [1, null, 'é'] } },
  },
  { call: 'listItems', with: { namespace: 'n', user_id: 'ana', limit: 1 }, gives: { items: [{ key: 'a/b?c#d' }] } },
  { call: 'listNamespaces', with: { user_id: 'ana' } },
  { call: 'moveNamespace', with: { name: 'n', user_id: 'ana', to: 'm.o' } },
  { call: 'deleteItem', with: { key: 'a/b?c#d', namespace: 'm.o', user_id: 'ana' } },
  { call: 'deleteNamespace', with: { name: 'm.o', user_id: 'ana' } },
  {
    call: 'appendToLog',
    with: {
      id: 'talk',
      user_id: 'ana',
      items: [{ role: 'user', content: 'Is noon fine?' }, { n: 2 }],
      operation_id: 'turn-1',
    },
  },
  { call: 'readLog', with: { id: 'talk', user_id: 'ana', limit: 1 }, gives: { total: 2 } },
  { call: 'replaceEndOfLog', with: { id: 'talk', user_id: 'ana', from: 1, items: [{ n: 3 }], operation_id: 'edit-1' } },
  { call: 'popFromLog', with: { id: 'talk', user_id: 'ana', expected_total: 2 } },
  { call: 'clearLog', with: { id: 'talk', user_id: 'ana' } },
  // LangGraph
  { call: 'putStoreItem', with: { namespace: ['users', 'ana'], key: 'editor', value: { theme: 'dark' } } },
  { call: 'getStoreItem', with: { namespace: 'users.ana', key: 'editor' }, gives: { value: { theme: 'dark' } } },
  {
    call: 'searchStoreItems',
    with: { namespace_prefix: ['users'], filter: { theme: 'dark' } },
    gives: { items: [{ key: 'editor' }] },
  },
  { call: 'listStoreNamespaces', with: { prefix: ['users'] }, gives: { namespaces: [['users', 'ana']] } },
  { call: 'deleteStoreItem', with: { namespace: ['users', 'ana'], key: 'editor' } },
  { call: 'getLangGraphConfig' },
  { call: 'storeNodeOutput', with: { node: 'observe', content: 'The ticket came from a phone.', graph_id: 't' } },
  { call: 'retrieveNodeMemories', with: { node: 'observe', query: 'which device?', graph_id: 't' } },
  { call: 'getGraphContext', with: { graph_id: 't', limit: 5 } },
  { call: 'storeGraphReflection', with: { content: 'Phone users do not find the export.', graph_id: 't' } },
  // Tools
  {
    call: 'callMcp',
    with: { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} },
    gives: { result: { tools: [{}, {}, {}, {}, {}, {}, {}, {}, {}] } },
  },
  { call: 'callMcpOfUser', with: { user_id: 'ana', jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} } },
  { call: 'getResource', fails: 'not_found' },
  { call: 'getMcpResource', fails: 'not_found' },
  { call: 'getMcpResourceOfUser', with: { user_id: 'ana' }, fails: 'not_found' },
  // Jobs, events
  { call: 'listJobs', with: { l: 2 } },
  { call: 'watchJob', with: { id: '$job' }, gives: ['state'] },
  { call: 'getJob', with: { id: '$job' }, gives: { id: '$job', state: 'done' } },
  { call: 'retryJob', with: { id: '$job' }, fails: 'conflict' },
  { call: 'cancelJob', with: { id: '$job' }, fails: 'conflict' },
  { call: 'discardJob', with: { id: '$job' }, fails: 'conflict' },
  { call: 'listEvents', with: { limit: 1 }, gives: { has_more: true } },
  { call: 'watchEvents', with: { kinds: 'memory.stored' }, gives: ['change'] },
  // Settings
  {
    call: 'putEval',
    with: { name: 'night', items: [{ query: 'rollback job', user_id: 'ana', expected: ['morning'] }] },
  },
  { call: 'listEvals' },
  { call: 'getEval', with: { name: 'night' } },
  { call: 'runEval', with: { name: 'night' } },
  { call: 'listEvalRuns', with: { name: 'night', limit: 1 } },
  { call: 'deleteEval', with: { name: 'night' } },
  { call: 'putRetrievalDefaults', with: { profile: 'activation', max_hops: 1 } },
  { call: 'getRetrievalDefaults' },
  { call: 'putPrivacyPolicy', with: { secrets: 'redact', personal: 'mark' } },
  { call: 'getPrivacyPolicy' },
  { call: 'patchLimits', with: { queries: 600, adds: null } },
  { call: 'getLimits' },
  // Administration
  { call: 'createTenant', with: { id: 'acme' }, gives: { id: 'acme' } },
  { call: 'listTenants' },
  { call: 'createKey', with: { role: 'write', name: 'Laptop', user_id: 'ana' }, keep: { key: 'key.id' } },
  { call: 'listKeys' },
  { call: 'revokeKey', with: { id: '$key' } },
  { call: 'eraseTenant', with: { id: 'acme' }, fails: 'conflict' },
  { call: 'listAudit', with: { limit: 1 } },
  { call: 'previewDecay', with: { at: '2027-06-01' } },
  { call: 'requestBackup', with: { tenant: 'default' } },
  { call: 'listBackups' },
  { call: 'getReembedStatus' },
  { call: 'cancelReembed', fails: 'conflict' },
  { call: 'startReembed' },
  { call: 'pauseReembed' },
  { call: 'listProviderCalls', with: { l: 1 } },
  { call: 'sumProviderCalls', with: { days: 1 } },
  { call: 'exportData', with: { user_id: 'ana' }, gives: '{"type":"end"' },
  {
    call: 'importData',
    gives: '"done":true',
    with: {
      dry_run: true,
      type: 'memory',
      id: '01a1fe30-e25b-7576-a0c2-3c4e3646bd72',
      user_id: 'ana',
      content: 'From elsewhere.',
    },
  },
  // The server
  { call: 'getHealth', gives: { ok: true } },
  { call: 'getReadiness' },
  { call: 'getMetrics', gives: 'cairn_' },
  { call: 'listSectors' },
  { call: 'getStats' },
  { call: 'getDescription', gives: { openapi: '3.1.1' } },
  { call: 'getDocsPage', gives: '<html' },
  { call: 'getDocsFile', with: { file: 'swagger-ui.css' } },
  { call: 'getConsole', gives: '<html' },
  { call: 'getConsoleFile', with: { file: 'none.js' }, fails: 'not_found' },
  { call: 'getConsoleSession' },
  { call: 'openConsoleSession', with: { key: 'wrong' }, fails: 'forbidden' },
  { call: 'closeConsoleSession', fails: 'forbidden' },
  // Questions that are answered later, and webhooks
  { call: 'createStandingQuery', with: { query: 'Where does Ana work?', user_id: 'ana' }, keep: { standing: 'id' } },
  { call: 'listStandingQueries', with: { l: 1 } },
  { call: 'getStandingQuery', with: { id: '$standing' } },
  { call: 'listStandingAnswers', with: { id: '$standing', l: 1 } },
  { call: 'deleteStandingQuery', with: { id: '$standing' } },
  { call: 'createWebhook', with: { url: 'https://example.com/hooks', events: ['memory.ready'] }, keep: { hook: 'id' } },
  { call: 'listWebhooks', with: { l: 1 } },
  { call: 'getWebhook', with: { id: '$hook' } },
  { call: 'listDeliveries', with: { id: '$hook', l: 1 } },
  { call: 'retryDeliveries', with: { id: '$hook' } },
  { call: 'deleteWebhook', with: { id: '$hook' } },
  // Several stores
  {
    call: 'queryFederation',
    with: { query: 'When does the rollback job run?', tenants: ['default'], k: 1 },
    gives: { members: [{ tenant: 'default', server: null, outcome: 'answered' }], degraded: false },
  },
  { call: 'addServer', with: { name: 'berlin', url: 'https://memory.example.com' }, gives: { has_key: false } },
  { call: 'listServers', gives: { items: [{ name: 'berlin', tenant: null }], total: 1 } },
  { call: 'removeServer', with: { name: 'berlin' }, gives: { removed: true } },
  { call: 'listRecalls', with: { user_id: 'ana', limit: 1 } },
  { call: 'listNearDuplicates', with: { user_id: 'ana', limit: 1 } },
  { call: 'listSettings' },
  { call: 'getActivity' },
  { call: 'beginProviderSignIn', fails: 'not_found' },
  { call: 'endProviderSignIn', fails: 'not_found' },
  // What is learned from feedback
  { call: 'learnWeights', gives: { learned: null } },
  { call: 'listLearned' },
  { call: 'acceptLearned', with: { id: 'none' }, fails: 'not_found' },
  { call: 'revertLearned', with: { id: 'none' }, fails: 'not_found' },
  // Consolidations
  { call: 'consolidate', with: { user_id: 'ben', dry_run: true }, gives: { proposals: [] } },
  { call: 'listConsolidations', with: { user_id: 'ben', l: 1 }, gives: { items: [] } },
  { call: 'undoConsolidation', with: { id: 'none' }, fails: 'not_found' },
  // What is erased comes last.
  { call: 'deleteMemory', with: { id: '$one' }, gives: { ok: true } },
  { call: 'listErasures', with: { l: 1 } },
  { call: 'getErasure', with: { id: 'none' }, fails: 'not_found' },
  { call: 'deleteMemories', with: { user_id: 'ana', tags: ['none'] } },
  { call: 'deleteMemoriesOfUser', with: { id: 'ana' } },
];
