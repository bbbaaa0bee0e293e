import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createRandom } from '../../src/engine/random.ts';
import { runCairn } from '../cli/run-cairn.ts';
import { chooseSeed, withStore } from '../support/add-checker.ts';
import { expectNoOrphans } from '../support/engine-fixture.ts';
import { inForm } from '../support/fault-form.ts';
import { databaseFile, type ServiceProcess, spawnService } from '../support/running-service.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** A life ends within this time after each caller has ended so many turns, at most. */
const MOMENT_MS = 400;
const TURNS = 2;
const BATCH = 25;
/** More than one commit erases. */
const ERASED = 110;
/** Most items of a batch of JSON. */
const AT_ONCE = 100;

type Send = ServiceProcess['request'];

/** Does something with the service again and again, and compares in the end what it was told with what is there. */
interface Caller {
  turn(send: Send, name: string): Promise<void>;
  check(send: Send): Promise<string>;
}

test(`${inForm(20)} kills during recalls, receipts and erasures: what was answered stands, once`, async () => {
  const seed = chooseSeed();
  const random = createRandom(seed);
  const folder = tempFolder();
  const callers = [createAsker(), createBatcher(), createEraser()];
  for (let life = 0; life < inForm(20); life++) {
    const service = spawnService({ folder });
    await service.ready;
    const turns = callers.map(() => 0);
    const calling = Promise.all(
      callers.map((caller, place) =>
        callUntilKilled(service, caller, { name: `${life}-${place}`, onTurn: () => void (turns[place]! += 1) }),
      ),
    );
    const wanted = Math.floor(random() * (TURNS + 1));
    const kill = async () => {
      while (Math.min(...turns) < wanted && service.obituary === undefined) await pause(1);
      await pause(random() * MOMENT_MS);
      await service.end('SIGKILL');
    };
    await Promise.all([calling, kill()]);
  }
  const service = spawnService({ folder });
  await service.ready;
  for (const [place, caller] of callers.entries()) await caller.turn(service.request, `last-${place}`);
  await service.idle();
  const seen: string[] = [];
  for (const caller of callers) seen.push(await caller.check(service.request));
  await service.end('SIGTERM');
  withStore(folder, expectNoOrphans);
  const words = path.join(folder, 'words.txt');
  fs.writeFileSync(words, 'Nebelkraehe\n');
  const settings = { OM_DB_PATH: databaseFile(folder) };
  const { stdout, stderr } = await runCairn(['verify-erasure', '--words', words, '--json'], { settings });
  expect(JSON.parse(stdout), stderr).toMatchObject({ chain: { brokenAt: null } });
  console.log(`seed ${seed}: ${seen.join('; ')}`);
});

async function callUntilKilled(
  service: ServiceProcess,
  caller: Caller,
  { name, onTurn }: { readonly name: string; readonly onTurn: () => void },
): Promise<void> {
  try {
    for (let turn = 0; ; turn++) {
      await caller.turn(service.request, `${name}-${turn}`);
      onTurn();
    }
  } catch (error) {
    if (service.obituary === undefined && !(error instanceof TypeError)) throw error;
  }
}

/** Asks, and says of some answers that they were used: that is acknowledged once the answer is in the log. */
function createAsker(): Caller {
  /** Ids of answers since the last one that was judged. */
  let unsure: string[] = [];
  const sure: string[] = [];
  const judged = new Map<string, string>();
  return {
    async turn(send, name) {
      // Answers of the life before may be lost with it.
      if (name.endsWith('-0')) unsure = [];
      await ok(send, 'POST', '/memory/add', { content: `The ferry ${name} has a berth.`, user_id: 'asker' });
      for (let count = 0; count < 4; count++) {
        const asked = { query: `berth of the ferry ${name}`, user_id: 'asker', k: 3, min_score: 0 };
        const { body } = await ok(send, 'POST', '/memory/query', asked);
        unsure.push(body['recall_id'] as string);
        if (count < 3) continue;
        const [recall, memory] = [unsure.at(-1)!, (body.matches as unknown as readonly { id: string }[])[0]!.id];
        await ok(send, 'POST', `/recalls/${recall}/feedback`, { verdict: 'used', memory_ids: [memory] });
        judged.set(recall, memory);
        sure.push(...unsure.splice(0));
      }
    },
    async check(send) {
      const listed: string[] = [];
      for (let cursor = ''; ;) {
        const { body } = await ok(send, 'GET', `/recalls?limit=100${cursor}`);
        listed.push(...(body.items as unknown as readonly { recall_id: string }[]).map((item) => item.recall_id));
        if (body['next'] === null || body['next'] === undefined) break;
        cursor = `&before=${body['next'] as number}`;
      }
      expect(new Set(listed).size).toBe(listed.length);
      expect(sure.filter((id) => !listed.includes(id))).toEqual([]);
      for (const [recall, memory] of judged) {
        const { body } = await ok(send, 'GET', `/recalls/${recall}`);
        expect(body['feedback']).toMatchObject([{ memory_id: memory, verdict: 'used' }]);
      }
      return `${listed.length} recalls in the log, ${sure.length} of them promised`;
    },
  };
}

/** Adds batches with a receipt; one whose answer was lost is sent again. */
function createBatcher(): Caller {
  const receipts: string[] = [];
  const texts = new Set<string>();
  let owed: string | undefined;
  return {
    async turn(send, name) {
      const batch = (owed ??= name);
      const items = Array.from({ length: BATCH }, (_, item) => ({ content: textOf(batch, item), user_id: 'batcher' }));
      const body = { items: [...items, items[0]!, { content: '' }] };
      const reply = await ok(send, 'POST', '/memory/add/batch?receipt=true', body, { 'idempotency-key': batch });
      for (const { content } of items) texts.add(content);
      receipts.push(reply.body['receipt_id'] as string);
      owed = undefined;
    },
    async check(send) {
      for (const id of receipts) {
        const { body } = await ok(send, 'GET', `/receipts/${id}?l=100`);
        expect(body).toMatchObject({ complete: true, refused: 1, total: BATCH + 2 });
        expect([body['stored'], body['merged']].map(Number).reduce((a, b) => a + b)).toBe(BATCH + 1);
      }
      const stored = (await readAll(send, 'batcher')).map(({ content }) => content);
      expect(stored.toSorted()).toEqual([...texts].sort());
      return `${receipts.length} receipts of ${stored.length} memories`;
    },
  };
}

const textOf = (batch: string, item: number) => `Crate ${item} of the shipment ${batch} is stored.`;

/** Fills a user and erases it; a delete that was broken off is asked for again. */
function createEraser(): Caller {
  const users: string[] = [];
  let owed: { readonly user: string; isFilled: boolean } | undefined;
  return {
    async turn(send, name) {
      const one = (owed ??= { user: `gone-${name}`, isFilled: false });
      const { user } = one;
      const items = Array.from({ length: ERASED }, (_, item) => ({ content: textOf(user, item), user_id: user }));
      for (let at = 0; at < ERASED && !one.isFilled; at += AT_ONCE) {
        const body = { items: items.slice(at, at + AT_ONCE) };
        await ok(send, 'POST', '/memory/add/batch', body, { 'idempotency-key': `${user}-${at}` });
      }
      one.isFilled = true;
      await ok(send, 'DELETE', `/users/${user}/memories`);
      users.push(user);
      owed = undefined;
    },
    async check(send) {
      const { body } = await ok(send, 'GET', '/erasures?l=1000');
      const receipts = body.items as unknown as readonly {
        readonly id: string;
        readonly closed_at: number | null;
        readonly chain_no: number | null;
        readonly counts: { readonly memories?: number };
      }[];
      const closed = receipts.filter(({ closed_at: at }) => at !== null);
      const places = closed.map(({ chain_no: place }) => place).sort((a, b) => a! - b!);
      expect(places).toEqual(places.map((_, place) => place + 1));
      const ids: string[] = [];
      for (const { id, counts, closed_at: closedAt } of receipts) {
        const erased = (await ok(send, 'GET', `/erasures/${id}`)).body['ids'] as string[];
        ids.push(...erased);
        // One that a kill ended names what it erased, and is never counted up.
        if (closedAt !== null) expect(counts.memories ?? 0).toBe(erased.length);
      }
      expect(new Set(ids).size, 'a memory is in one receipt').toBe(ids.length);
      expect(ids.length).toBe(users.length * ERASED);
      for (const user of users) expect(await readAll(send, user)).toEqual([]);
      return `${receipts.length} receipts of ${users.length} erased users, ${receipts.length - closed.length} of them open`;
    },
  };
}

async function readAll(send: Send, user: string) {
  const all: { readonly content: string }[] = [];
  for (;;) {
    const { body } = await ok(send, 'GET', `/memory/all?user_id=${user}&l=1000&u=${all.length}`);
    all.push(...body.items);
    if (body.items.length < 1000) return all;
  }
}

async function ok(send: Send, method: string, route: string, body?: object, headers: Record<string, string> = {}) {
  const reply = await send(method, route, { ...(body === undefined ? {} : { body }), headers });
  expect([200, 202, 207], `${method} ${route}: ${reply.text}`).toContain(reply.status);
  return reply;
}
