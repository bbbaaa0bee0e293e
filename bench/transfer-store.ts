/** A store with all that an export can hold, filled over HTTP, and an archive of another program. */
import fs from 'node:fs';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { createRandom } from '../src/engine/random.ts';
import { createTexts } from './load.ts';
import { createTextSource } from './natural-text.ts';
import { RawClient } from './raw-client.ts';

const BATCH = 100;
const USERS = 60;
/** For each kind of change, one memory in this number is changed, linked or replaced after it was added. */
const CHANGED_EACH = 50;

/** A call of the API: the body of a reply below 300. */
export type Call = (method: string, path: string, body?: unknown) => Promise<Readonly<Record<string, unknown>>>;

/** Makes a caller of a server on one connection. */
export function caller(url: string): { readonly call: Call; close(): void } {
  const client = new RawClient(url);
  return {
    async call(method, path, body) {
      const reply = await client.request(method, path, body === undefined ? '' : JSON.stringify(body));
      if (reply.status >= 300) throw new Error(`${method} ${path} answered ${reply.status}: ${reply.body}`);
      return JSON.parse(reply.body) as Record<string, unknown>;
    },
    close: () => client.close(),
  };
}

/**
 * Adds memories of many users, with sessions, tags, types, metadata, times, importance, external ids, items and
 * documents; user 0 owns a third of them.
 * @returns ids of the memories of user 0, in order
 */
export async function fillStore(call: Call, memories: number): Promise<readonly string[]> {
  const random = createRandom(7);
  const texts = createTexts(memories, 11);
  const ids: string[] = [];
  const start = Date.now();
  for (let at = 0; at < memories; at += BATCH) {
    const items = texts.slice(at, at + BATCH).map((content, place) => {
      const no = at + place;
      const user = no % 3 === 0 ? 0 : Math.floor(USERS * random() ** 2);
      return {
        content,
        user_id: user === 1 ? '' : `user-${user}`,
        ...(no % 4 === 0 ? { session_id: `talk-${Math.floor(no / 40)}` } : {}),
        ...(no % 5 === 0 ? { tags: [`tag-${no % 17}`, 'imported'] } : {}),
        ...(no % 6 === 0 ? { event_time: new Date(start - no * 60_000).toISOString() } : {}),
        ...(no % 7 === 0 ? { metadata: { source: 'chat', place: no, nested: { mood: 'calm' } } } : {}),
        ...(no % 8 === 0 ? { type: 'note', external_id: `note-${no}` } : {}),
        ...(no % 9 === 0 ? { importance: Number(random().toFixed(2)) } : {}),
      };
    });
    const reply = (await call('POST', '/memory/add/batch', { items })) as { results: readonly { id: string }[] };
    ids.push(...reply.results.flatMap(({ id }, place) => (items[place]!.user_id === 'user-0' ? [id] : [])));
  }
  for (let no = 0; no < memories / 200; no += 1) {
    const item = { user_id: `user-${no % 5}`, namespace: `settings.part${no % 3}`, key: `key ${no}` };
    await call('PUT', '/items', { ...item, value: { theme: no % 2 === 0 ? 'dark' : 'light', size: no } });
  }
  return [...new Set(ids)];
}

/** Adds documents of some pages of Markdown. */
export async function addDocuments(url: string, count: number): Promise<void> {
  const source = createTextSource(23);
  for (let no = 0; no < count; no += 1) {
    const parts = Array.from({ length: 6 }, (_, part) => `## Part ${part}\n\n${source.text(3_000)}\n`);
    const form = new FormData();
    form.set('file', new Blob([`# Book ${no}\n\n${parts.join('\n')}`]), `book-${no}.md`);
    form.set('user_id', 'user-0');
    form.set('external_id', `book-${no}`);
    const reply = await fetch(`${url}/memory/ingest`, { method: 'POST', body: form });
    if (!reply.ok) throw new Error(`the document was refused: ${await reply.text()}`);
  }
}

/** Changes memories, replaces, links, contradicts, archives, reinforces and deletes some, and recalls others. */
export async function changeStore(call: Call, ids: readonly string[], questions: readonly string[]): Promise<void> {
  const random = createRandom(13);
  for (let at = 0; at + CHANGED_EACH < ids.length; at += CHANGED_EACH) {
    const of = (place: number) => ids[at + place]!;
    await call('PATCH', `/memory/${of(0)}`, { content: `Changed since: ${createTexts(1, at + 1)[0]!}` });
    await call('PATCH', `/memory/${of(0)}`, { tags: ['changed'], title: `Change ${at}` });
    await call('POST', '/memory/supersede', { old_id: of(3), new_id: of(4) });
    await call('POST', '/memory/supersede', { old_id: of(4), new_id: of(6) });
    await call('POST', '/memory/contradict', { a: of(8), b: of(9), winner: of(9) });
    await call('POST', '/memory/link', { src: of(12), dst: of(15), type: 'supports', weight: random() });
    await call('PATCH', `/memory/${of(20)}`, { status: 'archived' });
    await call('POST', '/memory/reinforce', { id: of(22), boost: 0.3 });
    await call('DELETE', `/memory/${of(25)}`);
  }
  for (const query of questions) await call('POST', '/memory/query', { query, k: 8, reinforce: true });
  await untilRecalled(call, ids[40]!);
}

/** Waits until what recalls change is stored, which is done in order, by one more recall. */
async function untilRecalled(call: Call, id: string): Promise<void> {
  const read = () => call('GET', `/memory/${id}`) as Promise<{ content: string; access_count: number }>;
  const { content, access_count: before } = await read();
  const asked = { query: content.slice(0, 200), k: 8, filters: { users: ['user-0'] }, min_score: 0, reinforce: true };
  await call('POST', '/memory/query', asked);
  for (let waited = 0; (await read()).access_count === before; waited += 1) {
    if (waited > 600) throw new Error('the last recall changed nothing within a minute');
    await pause(100);
  }
}

/**
 * Writes a file like `conversations.json` of Claude's data export.
 * @returns the number of its messages
 */
export async function writeArchive(file: string, megabytes: number): Promise<number> {
  const source = createTextSource(31);
  const out = fs.createWriteStream(file);
  let messages = 0;
  let bytes = 0;
  for (let chat = 0; bytes < megabytes * 1e6; chat += 1) {
    const chatMessages = Array.from({ length: 40 }, (_, at) => ({
      uuid: `m-${chat}-${at}`,
      sender: at % 2 === 0 ? 'human' : 'assistant',
      text: source.text(at % 2 === 0 ? 120 : 900),
      created_at: new Date(1.7e12 + chat * 1e6 + at * 1e4).toISOString(),
    }));
    messages += chatMessages.length;
    const conversation = { uuid: `c-${chat}`, name: source.sentence(), chat_messages: chatMessages };
    const piece = `${chat === 0 ? '[' : ','}${JSON.stringify(conversation)}`;
    bytes += piece.length;
    if (!out.write(piece)) await once(out, 'drain');
  }
  out.end(']');
  await once(out, 'finish');
  return messages;
}
