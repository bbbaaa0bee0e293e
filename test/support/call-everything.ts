import type * as Client from '../../src/client/index.ts';

/** What `callEverything` returns. */
export const EVERYTHING = {
  found: ['Pages can remember, too.'],
  isVersionTwo: true,
  stale: ['conflict', 409, true],
  listed: 5,
  lastState: 'ready',
  fileName: 'runbook é.md',
  text: true,
  gone: ['not_found', 404],
  first: 'memory.stored',
};

/**
 * Calls everything that the client can do, and returns the results as plain JSON. The source text of this function is
 * sent to the place where the client runs (a browser, for example), where the client is the global `cairn`; so it uses
 * nothing else of this file.
 */
export async function callEverything(connection: { readonly url: string; readonly key: string }) {
  const { cairn } = globalThis as unknown as { readonly cairn: typeof Client };
  const client = cairn.createClient(connection);
  const failure = async (call: Promise<unknown>) => call.then(undefined, (error: Client.CairnError) => error);
  const { cursor } = await client.listEvents({ cursor: 'latest' });
  const { id } = await client.addMemory({ content: 'Pages can remember, too.', user_id: 'ana' }).ready();
  const { matches } = await client.queryMemories({ query: 'remember', filters: { user_id: 'ana' } });
  const { headers } = await client.patchMemory({ id, tags: ['web'] }, { ifMatch: '"1"' }).withHead();
  const stale = await failure(client.patchMemory({ id, tags: [] }, { ifMatch: '"1"' }));
  const memories = Array.from({ length: 5 }, (_, n) => ({ content: `Fact number ${n}.`, user_id: 'many' }));
  for await (const added of cairn.addAll(client, memories, { batchSize: 2 }))
    if ('error' in added) throw new Error(added.error.message);
  const listed = new Set<string>();
  for await (const memory of client.listMemories({ user_id: 'many', l: 2 })) listed.add(memory.id);
  const file = new File(['# Rollback\n\nRun the rollback job.\n'], 'runbook é.md');
  const receipt = await client.ingestDocument({ file, tags: ['ops'] });
  if (!('document_id' in receipt)) throw new Error('it was not asked to wait');
  let lastState = '';
  for await (const event of client.watchDocument({ id: receipt.document_id }))
    if (event.event === 'state') lastState = event.data.state;
  const document = await client.getDocument({ id: receipt.document_id });
  const text = await client.getDocumentContent({ id: receipt.document_id });
  await client.deleteMemory({ id });
  const gone = await failure(client.getMemory({ id }));
  let first = '';
  for await (const event of client.watchEvents({ cursor })) {
    if (event.event === 'change') first = event.data.kind;
    break;
  }
  return {
    found: matches.map(({ content }) => content),
    isVersionTwo: headers.get('etag') === `"2-${id}"`,
    stale: stale instanceof cairn.CairnError && [stale.code, stale.status, stale.requestId !== undefined],
    listed: listed.size,
    lastState,
    fileName: document.file_name,
    text: text.includes('Run the rollback job.'),
    gone: gone instanceof cairn.CairnError && [gone.code, gone.status],
    first,
  };
}
