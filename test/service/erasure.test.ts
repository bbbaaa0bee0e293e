import fs from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { canary, findCanaries } from '../support/canaries.ts';
import { drawLines, makePdf } from '../support/make-pdf.ts';
import { FORM_TYPE, multipart } from '../support/multipart.ts';
import { databaseFile, startServiceProcess, type ServiceProcess } from '../support/running-service.ts';
import { tempFolder } from '../support/temp-folder.ts';

/**
 * After a user's data was deleted, no byte of it is in any file of the service: neither text nor terms of an index, nor
 * vectors, names of files or uploads. This is looked for in the bytes of the files, not by asking the service.
 */

const USER = 'ana';
/** Bytes of a vector that are looked for: enough that they stand nowhere by chance. */
const VECTOR_BYTES = 16;

test('no byte of an erased user is left in any file', async () => {
  const folder = tempFolder();
  const service = await startServiceProcess({ folder });
  const send = senderTo(service);
  await send('POST', '/memory/add', { content: 'Ben keeps the lighthouse.', user_id: 'ben' });
  await storeEverything(service, send);
  await service.idle();
  const vectors = vectorsIn(folder);
  expect(vectors.length).toBeGreaterThan(3);
  // What will be looked for is found where it is.
  expect(remainsIn(folder, vectors)).toEqual(
    expect.arrayContaining(['content', 'upload', 'logged', 'value', 'a vector']),
  );

  await send('DELETE', `/users/${USER}/memories`);
  await expect.poll(() => remainsIn(folder, vectors), { interval: 250 }).toEqual([]);
  expect((await send('POST', '/memory/query', { query: 'Who keeps the lighthouse?' })).matches).toHaveLength(1);
  await service.end('SIGTERM');
  expect(remainsIn(folder, vectors)).toEqual([]);
});

type Send = ReturnType<typeof senderTo>;

/** Makes a function that sends a request that must succeed. */
function senderTo(service: ServiceProcess) {
  return async (method: string, route: string, body?: unknown, headers: Readonly<Record<string, string>> = {}) => {
    const reply = await service.request(method, route, { ...(body === undefined ? {} : { body }), headers });
    expect(reply.status, `${method} ${route}: ${reply.text}`).toBeLessThan(300);
    return reply.body;
  };
}

/** Stores whatever a user can have, under all names that it can have. */
async function storeEverything(service: ServiceProcess, send: Send): Promise<void> {
  const memory = {
    content: `The keeper ${canary('content')} met Ada Kanari7qname at dusk.`,
    title: canary('title'),
    tags: [canary('tag')],
    metadata: { [canary('metadatakey')]: canary('metadatavalue') },
    user_id: USER,
    session_id: canary('session'),
    external_id: canary('externalid'),
    entities: [canary('entity')],
    files: [`/tmp/${canary('path')}.txt`],
    type: canary('type'),
  };
  const first = await send('POST', '/memory/add', memory, { 'idempotency-key': canary('idempotencykey') });
  const second = await send('POST', '/memory/add', { content: `Ada left ${canary('second')} early.`, user_id: USER });
  await service.idle();
  await send('PATCH', `/memory/${first.id}`, { content: `Ada met ${canary('changed')} at dawn.`, user_id: USER });
  await send('POST', '/memory/supersede', { old_id: second.id, new_id: first.id, user_id: USER });
  const document = { text: `# ${canary('heading')}\n\nA letter about ${canary('document')}.`, user_id: USER };
  await send('POST', '/memory/ingest', { ...document, file_name: `${canary('filename')}.md` });
  const pdf = makePdf({ pages: [{ texts: drawLines([`A page about ${canary('upload')}`], { x: 72, y: 700 }) }] });
  const upload = await fetch(`${await service.ready}/memory/ingest`, {
    method: 'POST',
    headers: { 'content-type': FORM_TYPE },
    body: new Uint8Array(
      multipart([
        { name: 'user_id', content: USER },
        { name: 'title', content: canary('uploadtitle') },
        { name: 'file', fileName: `${canary('uploadname')}.pdf`, content: pdf },
      ]),
    ),
  });
  expect(upload.status, await upload.text()).toBe(202);
  const place = { user_id: USER, namespace: canary('namespace'), key: canary('key') };
  for (const value of [canary('value'), canary('newvalue')]) {
    await send('PUT', '/items', { ...place, value: { [canary('field')]: value }, content: `Item ${value}` });
  }
  const log = `/sessions/${canary('logsession')}/log`;
  await send('POST', log, { user_id: USER, items: [{ role: 'user', content: canary('logged') }] });
  await service.idle();
  const asked = { query: `What about ${canary('question')} and ${canary('content')}?`, user_id: USER, min_score: 0 };
  const { recall_id: recallId, matches } = await send('POST', '/memory/query', asked);
  const [{ id } = { id: '' }] = matches as unknown as readonly { readonly id: string }[];
  await send('POST', `/recalls/${String(recallId)}/feedback`, { verdict: 'used', memory_ids: [id] });
}

/** Reads the vectors that are stored, each by some of its bytes. */
function vectorsIn(folder: string): Buffer[] {
  using db = Object.assign(new Database(databaseFile(folder), { readonly: true }), {
    [Symbol.dispose]() {
      db.close();
    },
  });
  const rows = db.prepare('SELECT embedding FROM vectors JOIN users USING (user_no) WHERE user_id = ?').pluck();
  return (rows.all(USER) as Buffer[]).map((vector) => vector.subarray(0, VECTOR_BYTES));
}

/** What is left of the user in the bytes and names of all files of a folder. */
function remainsIn(folder: string, vectors: readonly Buffer[]): string[] {
  const names = fs.readdirSync(folder, { recursive: true, encoding: 'utf8' });
  // A file may go while the others are read.
  const isFile = (file: string) => fs.statSync(file, { throwIfNoEntry: false })?.isFile() ?? false;
  const files = names.map((name) => path.join(folder, name)).filter(isFile);
  const found = new Set(findCanaries(names.join('\n')));
  for (const file of files) {
    const bytes = fs.readFileSync(file);
    for (const place of findCanaries(bytes.toString('latin1'))) found.add(place);
    if (vectors.some((vector) => bytes.includes(vector))) found.add('a vector');
  }
  return [...found].sort();
}
