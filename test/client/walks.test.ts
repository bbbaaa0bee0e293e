import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { addAll, createClient, type Client } from '../../src/client/index.ts';
import type { Tenant } from '../../src/engine/engine.ts';
import { newMemory } from '../support/new-memory.ts';
import { hasPython, pythonEnvironment } from '../support/python.ts';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** Lists that are walked while they change, and adds of any size, with both clients against the real server. */

let api: TestApi;
let client: Client;
beforeAll(async () => {
  api = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' } });
  client = createClient({ url: api.url, key: ADMIN_KEY });
});
afterAll(() => api.stop());

async function addSome(user: string, count: number): Promise<string[]> {
  const ids: string[] = [];
  const memories = Array.from({ length: count }, (_, n) => ({ content: `Fact number ${n}.`, user_id: user }));
  for await (const added of addAll(client, memories)) if ('id' in added) ids.push(added.id);
  return ids;
}

async function runPython(program: string, ...values: readonly string[]): Promise<unknown> {
  const { stdout } = await promisify(execFile)('python3', ['-c', program, ...values], { env: pythonEnvironment() });
  return JSON.parse(stdout);
}

/** How a list changes while it is walked: which of the entries seen so far are deleted after each. */
const CHANGES = {
  'each entry as it comes': (seen: readonly string[]) => seen.slice(-1),
  'every second entry': (seen: readonly string[]) => (seen.length % 2 === 0 ? seen.slice(-1) : []),
  'a page at its end': (seen: readonly string[]) => (seen.length % 7 === 0 ? seen.slice(-7) : []),
  'all but the first page, a page late': (seen: readonly string[]) =>
    seen.length > 14 && seen.length % 7 === 0 ? seen.slice(-14, -7) : [],
};

describe.each(Object.entries(CHANGES))('the TypeScript client, deleting %s', (name, deletedAfter) => {
  test.each([1, 2, 7])('meets every memory once on pages of %d', async (l) => {
    const user = `${name} ${l}`;
    const ids = await addSome(user, 40);
    const seen: string[] = [];
    for await (const { id } of client.listMemories({ user_id: user, l })) {
      seen.push(id);
      for (const gone of deletedAfter(seen)) await client.deleteMemory({ id: gone });
      // What is added meanwhile stands at the beginning, and moves the others the other way.
      if (seen.length === 20) await addSome(user, 3);
    }
    expect(seen.filter((id) => ids.includes(id))).toEqual(ids.toReversed());
    expect(new Set(seen).size).toBe(seen.length);
  });
});

describe('a memory that leaves a list after its page was listed and before it is read', () => {
  const BOUNDS = { tenantId: 'default', role: 'read', tags: ['team'] } as const;
  const ways = {
    'as it is erased': { bounds: undefined, leave: async (tenant: Tenant, id: string) => tenant.deleteMemory(id) },
    'as it leaves the bounds of the key': {
      bounds: BOUNDS,
      leave: async (tenant: Tenant, id: string) => tenant.patchMemory(id, { tags: [] }),
    },
  };
  test.each(Object.entries(ways))('hides no other: %s', async (name, { bounds, leave }) => {
    const made = bounds && api.engine.control.createKey(bounds);
    const tenant = await api.engine.tenant('default');
    // Two of them fill a slice, and two slices a page with the memory after it.
    const content = 'words '.repeat(40_000);
    for (let no = 0; no < 8; no += 1)
      await tenant.addMemories([newMemory({ content: `${no} ${name} ${content}`, userId: name, tags: ['team'] })]);
    const ids = (await tenant.listMemories({ userIds: [name] }, { limit: 8, offset: 0 })).map(({ id }) => id);
    const leaving = ids[3]!;
    const seenByKey = tenant.as(made?.record.id ?? 'environment');
    const { streamMemories } = seenByKey;
    let hasLeft = false;
    const leavesAfterSlice: typeof streamMemories = (...asked) => {
      const list = streamMemories(...asked);
      return {
        async *[Symbol.asyncIterator]() {
          for await (const slice of list) {
            yield slice;
            if (!hasLeft) await leave(tenant, leaving);
            hasLeft = true;
          }
        },
        get listed() {
          return list.listed;
        },
      };
    };
    Object.assign(seenByKey, { streamMemories: leavesAfterSlice });
    onTestFinished(() => void Object.assign(seenByKey, { streamMemories }));
    const walker = createClient({ url: api.url, key: made?.secret ?? ADMIN_KEY });
    const seen: string[] = [];
    for await (const { id } of walker.listMemories({ user_id: name, l: 3 })) seen.push(id);
    expect([hasLeft, seen]).toEqual([true, ids.filter((id) => id !== leaving)]);
  });
});

test('a list of webhooks is walked the same way', async () => {
  const ids: string[] = [];
  for (let no = 0; no < 12; no += 1)
    ids.push((await client.createWebhook({ url: `https://example.com/${no}`, events: ['memory.ready'] })).id);
  const seen: string[] = [];
  for await (const { id } of client.listWebhooks({ l: 4 })) {
    seen.push(id);
    await client.deleteWebhook({ id });
  }
  expect(seen).toEqual(ids.toReversed());
});

test.skipIf(!hasPython)('so does the Python client', async () => {
  const program = `
import json, sys
from cairn_memory import Client
client = Client(sys.argv[1], sys.argv[2])
walks = []
for size in (1, 2, 7):
    user = f"python {size}"
    added = [one["id"] for one in client.add_all({"content": f"Fact number {n}.", "user_id": user} for n in range(40))]
    seen = []
    for entry in client.each(client.list_memories, user_id=user, l=size):
        seen.append(entry["id"])
        client.delete_memory(id=entry["id"])
    walks.append(seen == added[::-1])
hooks = [client.create_webhook(url=f"https://example.com/{n}", events=["memory.ready"])["id"] for n in range(12)]
seen = []
for hook in client.each(client.list_webhooks, l=4):
    seen.append(hook["id"])
    client.delete_webhook(id=hook["id"])
walks.append(seen == hooks[::-1])
print(json.dumps(walks))`;
  expect(await runPython(program, api.url, ADMIN_KEY)).toEqual([true, true, true, true]);
});

/** A batch of which the second item is merged into the memory of the first. */
const REPEATED = ['Plums are ripe.', 'Plums are ripe.', 'Pears are not.'].map((content) => ({ content }));

test('a receipt is walked with the items that share a memory', async () => {
  const { receipt_id: id } = await client.addMemories({ items: REPEATED, receipt: true });
  const seen: [number, string][] = [];
  for await (const { item, fate } of client.getBatchReceipt({ id: id!, l: 2 })) seen.push([item, fate]);
  expect(seen).toEqual([
    [1, 'stored'],
    [2, 'merged'],
    [3, 'stored'],
  ]);
});

test.skipIf(!hasPython)('by the Python client, too, with the items that share a memory', async () => {
  const program = `
import json, sys
from cairn_memory import Client
client = Client(sys.argv[1], sys.argv[2])
items = [{"content": text, "user_id": "python"} for text in ["Plums are ripe.", "Plums are ripe.", "Pears are not."]]
receipt = client.add_memories(items=items, receipt=True)["receipt_id"]
print(json.dumps([entry["item"] for entry in client.each(client.get_batch_receipt, id=receipt, l=2)]))`;
  expect(await runPython(program, api.url, ADMIN_KEY)).toEqual([1, 2, 3]);
});

/** Ten memories that no request holds together, among them one that no request holds at all. */
const LARGE = Array.from({ length: 10 }, (_, n) => ({ content: `${n} ${'é'.repeat(n === 4 ? 700_000 : 100_000)}` }));

test('memories of any size are added, and one that is too large is refused alone', async () => {
  const outcomes: unknown[] = [];
  for await (const added of addAll(client, LARGE)) outcomes.push('error' in added ? added.error.code : added.index);
  expect(outcomes).toEqual([0, 1, 2, 3, 'too_large', 5, 6, 7, 8, 9]);
});

test.skipIf(!hasPython)('by the Python client, too', async () => {
  const program = `
import json, sys
from cairn_memory import Client
client = Client(sys.argv[1], sys.argv[2])
large = [{"content": f"{n} " + "é" * (700_000 if n == 4 else 100_000)} for n in range(10)]
print(json.dumps([one["error"]["code"] if "error" in one else one["index"] for one in client.add_all(large)]))`;
  expect(await runPython(program, api.url, ADMIN_KEY)).toEqual([0, 1, 2, 3, 'too_large', 5, 6, 7, 8, 9]);
});
