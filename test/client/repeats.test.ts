import { execFile } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { snakeCase } from '../../reference/python-client.ts';
import { createClient, type CallOptions } from '../../src/client/index.ts';
import { OPERATIONS } from '../../src/client/generated/operations.ts';
import { hasPython, pythonEnvironment } from '../support/python.ts';

/**
 * What a client does whose connection breaks off before a reply: a request that the server may have carried out is sent
 * again only if a second one has no second effect.
 */
const REPEATED = {
  'it only reads': `
    listDocuments getDocument getDocumentContent listChunks getDocumentReceipt watchDocument diffMemories listRecalls
    getRecall listContradictions listNearDuplicates listLinks listMemories getMemory getHistory getTimeline
    listMemoriesOfUser listUsers listSessions listTypes listTags getNeighbourhood getUserGraph getItem listNamespaces
    readLog getUserSummary getStoreItem getLangGraphConfig exportData listEntities getEntity listEvents watchEvents
    listStandingQueries getStandingQuery listStandingAnswers listWebhooks getWebhook listDeliveries listEvals getEval
    listEvalRuns listLearned getResource getMcpResource getMcpResourceOfUser listJobs getJob watchJob
    getRetrievalDefaults getPrivacyPolicy getLimits listAudit listErasures getErasure listTenants listKeys listBackups
    listSettings getActivity getReembedStatus listProviderCalls sumProviderCalls getConsole getConsoleSession
    beginProviderSignIn endProviderSignIn getConsoleFile getHealth getReadiness getMetrics listSectors getStats
    getDescription getDocsPage getDocsFile getBatchReceipt listServers listConsolidations`,
  'it reads by POST, as the question stands in the body': `
    queryMemories queryMemoriesAgain explainMemory replayRecall pageMemories listItems searchStoreItems
    listStoreNamespaces retrieveNodeMemories getGraphContext regenerateUserSummary previewDecay queryFederation`,
  'it says what shall be': `
    replaceDocument patchMemory putItem moveNamespace putStoreItem putRetrievalDefaults putPrivacyPolicy patchLimits
    giveRecallFeedback`,
  'it says what shall no longer be': `
    deleteDocument unlinkMemories deleteMemory deleteMemories deleteMemoriesOfUser deleteItem deleteNamespace clearLog
    deleteStoreItem deleteStandingQuery deleteWebhook deleteEval discardJob eraseTenant revokeKey cancelReembed
    closeConsoleSession removeServer`,
  'an idempotency key makes the second request the first': 'addMemory addMemoryAgain addMemories',
};
const SENT_ONCE = `
  ingestDocument ingestPage ingestDocuments cancelDocument linkMemories supersedeMemory contradictMemories reflect
  reinforceMemory appendToLog replaceEndOfLog popFromLog storeNodeOutput storeGraphReflection importData
  createStandingQuery createWebhook retryDeliveries putEval runEval learnWeights acceptLearned revertLearned callMcp
  callMcpOfUser retryJob cancelJob createTenant createKey requestBackup startReembed pauseReembed openConsoleSession
  addServer consolidate undoConsolidation`;

const names = (text: string) => text.trim().split(/\s+/);
const repeated = Object.values(REPEATED).flatMap(names);
const sentOnce = names(SENT_ONCE);

test('the table says of every operation whether it is repeated', () => {
  expect([...repeated, ...sentOnce].sort()).toEqual(Object.keys(OPERATIONS).sort());
});

/** Ways in which the reply to a request gets lost, and the code of the error. */
const LOST = {
  unreachable: (response: http.ServerResponse) => response.destroy(),
  unavailable: (response: http.ServerResponse) =>
    response
      .writeHead(503, { 'content-type': 'application/problem+json' })
      .end(JSON.stringify({ code: 'unavailable', detail: 'the commit was not answered', may_be_written: true })),
};

/** A server that gives every reply as lost, and counts the requests by method and path. */
async function startBreaking(code: keyof typeof LOST) {
  const seen = new Map<string, number>();
  const server = http.createServer(({ method, url, headers }, response) => {
    const asked = `${method} ${url!.split('?')[0]} ${String(headers['x-request-id'])}`;
    seen.set(asked, (seen.get(asked) ?? 0) + 1);
    LOST[code](response);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void server.close());
  const attempts = (name: string) => [...seen].find(([asked]) => asked.endsWith(` ${name}`))?.[1] ?? 0;
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, attempts };
}

const FIELDS = { id: 'i', name: 'n', file: 'f', user_id: 'u', key: 'k', content: 'c' };
/** Attempts of each operation when one more is allowed. */
const EXPECTED = Object.fromEntries(Object.keys(OPERATIONS).map((name) => [name, repeated.includes(name) ? 2 : 1]));

test.each(['unreachable', 'unavailable'] as const)(
  'the TypeScript client repeats what the table says: %s',
  async (code) => {
    const { url, attempts } = await startBreaking(code);
    const client = createClient({ url, retries: 1 }) as unknown as Readonly<
      Record<string, (input: object, options: CallOptions) => PromiseLike<unknown> | AsyncIterable<unknown>>
    >;
    const call = async (name: string) => {
      try {
        const reply = client[name]!(FIELDS, { requestId: name, idempotencyKey: undefined });
        if ('then' in reply) await reply;
        else for await (const event of reply) expect(event).toBeUndefined();
      } catch (error) {
        expect(error).toMatchObject({ code });
      }
      return [name, attempts(name)];
    };
    const seen = await Promise.all(Object.keys(OPERATIONS).map(call));
    expect(Object.fromEntries(seen)).toEqual(EXPECTED);
    const [adding, changing] = [
      client['addMemory']!({ content: 'c' }, { requestId: 'add', idempotencyKey: false }),
      client['patchMemory']!({ id: 'i' }, { requestId: 'patch', ifMatch: '"1"' }),
    ];
    await Promise.allSettled([adding, changing]);
    // Without its key an add might happen twice; a change of one version would be refused the second time.
    expect([attempts('add'), attempts('patch')]).toEqual([1, 1]);
  },
);

test.skipIf(!hasPython).each(['unreachable', 'unavailable'] as const)(
  'the Python client repeats the same: %s',
  async (code) => {
    const { url, attempts } = await startBreaking(code);
    const all = Object.fromEntries(Object.keys(OPERATIONS).map((name) => [snakeCase(name), name]));
    const program = `
import json, sys
from concurrent.futures import ThreadPoolExecutor
from cairn_memory import CairnError, Client
from cairn_memory._generated import OPERATIONS

client = Client(sys.argv[1], retries=1)

def call(name, request_id, **options):
    operation = OPERATIONS[name]
    make = client._watch if operation.has_events else client._call
    try:
        for event in make(operation, json.loads(sys.argv[3]), {"request_id": request_id, **options}):
            pass
    except CairnError as error:
        assert error.code == sys.argv[4], error.code

with ThreadPoolExecutor(32) as pool:
    calls = [pool.submit(call, name, asked) for name, asked in json.loads(sys.argv[2]).items()]
    calls.append(pool.submit(call, "ingest_document", "keyed ingest", idempotency_key="mine"))
    calls.append(pool.submit(call, "supersede_memory", "keyed supersede", idempotency_key="mine"))
    calls.append(pool.submit(call, "add_memory", "keyed add", idempotency_key="mine"))
    calls.append(pool.submit(call, "add_memory", "keyless add", idempotency_key=False))
    calls.append(pool.submit(call, "patch_memory", "one version", if_match='"1"'))
    for one in calls:
        one.result()
`;
    const given = [url, JSON.stringify(all), JSON.stringify(FIELDS), code];
    await promisify(execFile)('python3', ['-c', program, ...given], { env: pythonEnvironment() });
    expect(Object.fromEntries(Object.keys(OPERATIONS).map((name) => [name, attempts(name)]))).toEqual(EXPECTED);
    // A key that the operation does not take makes nothing safe.
    const others = ['keyed ingest', 'keyed supersede', 'keyed add', 'keyless add', 'one version'];
    expect(others.map(attempts)).toEqual([1, 1, 2, 1, 1]);
  },
);
