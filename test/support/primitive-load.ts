import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'vitest';
import { createRandom } from '../../src/engine/random.ts';
import type { ServiceProcess } from './running-service.ts';

/**
 * Several callers that each use one part of the API, one request after the other, while the service may be killed. A
 * request whose reply was lost is sent again. Each caller keeps a model of what must be stored, and in the end all
 * models are compared with what the service returns.
 */
export interface PrimitiveLoad {
  /** Number of requests that were answered. */
  readonly answered: number;
  /** Number of requests that were sent more than once. */
  readonly repeated: number;
  /** Runs all callers until `stop`. Rejects if one of them received a wrong reply. */
  readonly done: Promise<void>;
  /** Waits until `answers` further requests are answered, and a moment more, so that other requests are in flight. */
  proceed(answers: number): Promise<void>;
  /** Ends the callers, each after its current operation. */
  stop(): void;
  /**
   * Compares the replies that the callers received with what is stored, and the event feed with both. @returns a
   * summary
   */
  check(): Promise<string>;
}

export interface PrimitiveLoadOptions {
  readonly seed: number;
  /** Returns the service to which requests are sent, once it is ready. */
  readonly service: () => Promise<ServiceProcess>;
}

interface Event {
  readonly cursor: string;
  readonly kind: string;
  readonly id: string | null;
}
type Random = () => number;
type Model = string[];

const MOVED = 120;
/** Number of items that are erased at once; it is more than one commit erases. */
const ERASED = 110;
const PUTTERS = 2;
const LOGGERS = 2;
const KEYS = 5;
const PAUSE_MS = 20;
const MOMENT_MS = 40;

export function startPrimitiveLoad({ seed, service }: PrimitiveLoadOptions): PrimitiveLoad {
  const random = createRandom(seed);
  const run = { stopped: false, answered: 0, repeated: 0, created: 0, erased: 0 };

  /**
   * Sends a request until it is answered. If `isRepeated` is true, an earlier attempt may also have been carried out.
   */
  async function send(method: string, path: string, body?: object, headers: Record<string, string> = {}) {
    for (let attempt = 0; ; attempt += 1) {
      const target = await service();
      const reply = await target
        .request(method, path, { ...(body === undefined ? {} : { body }), headers })
        .catch((error: unknown) => {
          if (!(error instanceof TypeError)) throw error;
        });
      if (reply !== undefined && reply.status !== 503) {
        run.answered += 1;
        if (attempt > 0) run.repeated += 1;
        return { ...reply, isRepeated: attempt > 0 };
      }
      if (target.obituary !== undefined && target === (await service())) throw new Error(target.obituary);
      await pause(PAUSE_MS);
    }
  }
  const ok = async (...request: Parameters<typeof send>) => {
    const reply = await send(...request);
    expect([200, 201, 202], reply.text).toContain(reply.status);
    return reply;
  };
  const put = async (
    item: { readonly user_id: string; readonly namespace: string; readonly key: string },
    value: object,
  ) => ok('PUT', '/items', { ...item, value });

  const callers = [
    ...Array.from({ length: PUTTERS }, (_, n) => createPutter(`putter-${n}`, createRandom(seed + n))),
    ...Array.from({ length: LOGGERS }, (_, n) => createLogger(`logger-${n}`, createRandom(seed + 100 + n))),
    createKeeper(),
    createMerger(),
    createBatcher(),
    createReflector(),
    createMover(),
    createEraser(),
  ];
  const follower = createFollower();
  const done = follower.begin().then(async () => {
    const calling = callers.map(async ({ turn, begin }) => {
      await begin?.();
      while (!run.stopped) await turn();
    });
    await Promise.all([follower.follow(), ...calling]);
  });
  done.catch(() => {}); // Whoever needs it awaits it.

  return {
    get answered() {
      return run.answered;
    },
    get repeated() {
      return run.repeated;
    },
    done,
    async proceed(answers) {
      const until = run.answered + answers;
      const reached = async () => {
        while (run.answered < until) await pause(1);
        await pause(random() * MOMENT_MS);
      };
      await Promise.race([done, reached()]);
    },
    stop: () => void (run.stopped = true),
    async check() {
      for (const { check } of callers) await check();
      return follower.check();
    },
  };

  /** A caller that stores and deletes items, and knows every version of each item. */
  function createPutter(user: string, chance: Random) {
    const items = new Map<string, number[]>();
    let revision = 0;
    const placeOf = (key: string) => ({ user_id: user, namespace: 'state', key });
    const query = (key: string) => `/items?${new URLSearchParams(placeOf(key)).toString()}`;
    return {
      begin: undefined,
      async turn() {
        const key = `k${Math.floor(chance() * KEYS)}`;
        const revisions = items.get(key) ?? [];
        if (revisions.length > 0 && chance() < 0.1) {
          const reply = await send('DELETE', query(key));
          expect(reply.isRepeated ? [200, 404] : [200], reply.text).toContain(reply.status);
          items.delete(key);
          run.erased += 1;
          return;
        }
        revision += 1;
        const { body } = await put(placeOf(key), { revision });
        if (revisions.length === 0) run.created += 1;
        items.set(key, [...revisions, revision]);
        expect(body['version']).toBe(revisions.length + 1);
      },
      async check() {
        for (let n = 0; n < KEYS; n += 1) {
          const revisions = items.get(`k${n}`) ?? [];
          const { status, body } = await send('GET', query(`k${n}`));
          expect(status).toBe(revisions.length > 0 ? 200 : 404);
          if (revisions.length === 0) continue;
          expect(body['value']).toEqual({ revision: revisions.at(-1) });
          const history = await ok('GET', `/memory/${body.id}/history?l=1000`);
          const former = history.body.items as unknown as { readonly replaced: { readonly value: object } }[];
          expect(former.map(({ replaced }) => replaced.value).reverse()).toEqual(
            revisions.slice(0, -1).map((each) => ({ revision: each })),
          );
        }
      },
    };
  }

  /**
   * A caller that appends to a log, pops from it and replaces its end. Operation ids or expected lengths make each
   * happen once.
   */
  function createLogger(session: string, chance: Random) {
    let model: Model = [];
    let operation = 0;
    const path = `/sessions/${session}/log`;
    const read = async () => (await ok('GET', `${path}?limit=1000`)).body;
    return {
      begin: undefined,
      async turn() {
        const kind = chance();
        operation += 1;
        if (kind < 0.25 && model.length > 0) {
          const reply = await send('POST', `${path}/pop`, { expected_total: model.length });
          // The answer of a pop that was carried out may be lost: its repetition takes no second item.
          if (reply.isRepeated && reply.status === 409) expect((await read())['total']).toBe(model.length - 1);
          else
            expect(reply.body, reply.text).toMatchObject({ popped: { item: model.at(-1) }, total: model.length - 1 });
          model = model.slice(0, -1);
          return;
        }
        const items = Array.from({ length: 1 + Math.floor(chance() * 3) }, (_, n) => `${operation}.${n}`);
        const from = kind < 0.4 ? Math.max(0, model.length - 2) : model.length;
        const change = { items, operation_id: `operation-${operation}` };
        const { body } =
          from < model.length
            ? await ok('POST', `${path}/replace`, { ...change, from })
            : await ok('POST', path, change);
        model = [...model.slice(0, from), ...items];
        expect(body).toMatchObject({ position: from, total: model.length });
        if (model.length > 900) {
          await ok('DELETE', path);
          model = [];
        }
      },
      async check() {
        const { items } = await read();
        expect(items.map((each) => (each as unknown as { readonly item: string }).item)).toEqual(model);
      },
    };
  }

  /** A caller that adds the same text again and again with `on_duplicate: keep`, so that each copy must be stored. */
  function createKeeper() {
    let kept = 0;
    return {
      begin: undefined,
      async turn() {
        const body = { content: 'The tide is high.', user_id: 'keeper', on_duplicate: 'keep' };
        await ok('POST', '/memory/add', body, { 'idempotency-key': `${seed}-keep-${kept}` });
        kept += 1;
        run.created += 1;
        await pause(PAUSE_MS);
      },
      async check() {
        expect((await readAll()).filter(({ user_id }) => user_id === 'keeper')).toHaveLength(kept);
      },
    };
  }

  /** A caller that adds the same few sentences again and again, so that each sentence must be one memory. */
  function createMerger() {
    const ids = new Map<string, string>();
    let turns = 0;
    return {
      begin: undefined,
      async turn() {
        const content = `The lighthouse keeper counts ${turns % 7} ships.`;
        const { body, isRepeated } = await ok('POST', '/memory/add', { content, user_id: 'merger' });
        const known = ids.get(content);
        if (known === undefined) run.created += 1;
        else expect(body.id).toBe(known);
        // The answer to the first add may be lost: then its repetition is told of the same memory.
        if (!isRepeated) expect(body['deduplicated'] === true).toBe(known !== undefined);
        ids.set(content, body.id);
        turns += 1;
        await pause(PAUSE_MS);
      },
      async check() {
        const stored = (await readAll()).filter(({ user_id }) => user_id === 'merger').map(({ id }) => id);
        expect(stored.sort()).toEqual([...ids.values()].sort());
      },
    };
  }

  /** A caller that adds batches of new, known and invalid memories. An idempotency key makes each batch happen once. */
  function createBatcher() {
    const stored = new Set<string>();
    let batches = 0;
    return {
      begin: undefined,
      async turn() {
        const items = [
          ...Array.from({ length: 5 }, (_, n) => ({ content: `Batch ${batches} has part ${n}.`, user_id: 'batcher' })),
          { content: 'Each batch says this.', user_id: 'batcher' },
          { content: '', user_id: 'batcher' },
        ];
        const key = { 'idempotency-key': `${seed}-batch-${batches}` };
        const { body } = await ok('POST', '/memory/add/batch', { items }, key);
        const results = body['results'] as readonly { readonly id?: string; readonly error?: object }[];
        expect(results.map(({ error }) => error !== undefined)).toEqual(items.map(({ content }) => content === ''));
        for (const { id } of results) if (id !== undefined) stored.add(id);
        run.created += batches === 0 ? 6 : 5;
        batches += 1;
        await pause(PAUSE_MS);
      },
      async check() {
        const found = (await readAll()).filter(({ user_id }) => user_id === 'batcher').map(({ id }) => id);
        expect(found).toHaveLength(batches === 0 ? 0 : 5 * batches + 1);
        expect(new Set(found)).toEqual(stored);
      },
    };
  }

  /**
   * A caller that stores memories of a graph's node, each with a reflection, which must always be linked to its memory.
   */
  function createReflector() {
    return {
      begin: undefined,
      async turn() {
        const body = { node: 'observe', content: 'The fog horn is broken.', user_id: 'reflector', reflective: true };
        await ok('POST', '/lgm/store', body);
        await pause(PAUSE_MS);
      },
      async check() {
        const stored = (await readAll()).filter(({ user_id }) => user_id === 'reflector');
        const linked: string[] = [];
        for (const { id } of stored) {
          const { items } = (await ok('GET', `/memory/${id}/links`)).body;
          const links = items as unknown as readonly { readonly type: string; readonly id: string }[];
          linked.push(...links.filter(({ type }) => type === 'derived_from').map((link) => link.id));
        }
        // Each has one link that leads from or to it. A store whose answer was lost was carried out twice.
        expect(linked.sort()).toEqual(stored.map(({ id }) => id).sort());
        run.created += stored.length;
      },
    };
  }

  /** A caller that renames a namespace to and fro, and checks after each reply where its items are. */
  function createMover() {
    let place = 'here';
    const user = 'mover';
    /**
     * Returns the namespace that contains all items. It fails if the items are in two namespaces, as in a half-done
     * move.
     */
    const whereAll = async () => {
      const { items } = (await ok('GET', `/namespaces?user_id=${user}&max_depth=1`)).body;
      expect(items).toMatchObject([{ items: MOVED }]);
      return (items as unknown as { readonly namespace: string }[])[0]!.namespace;
    };
    return {
      async begin() {
        const keys = Array.from({ length: MOVED }, (_, n) => n);
        await Promise.all(
          keys.map((n) => put({ user_id: user, namespace: n % 2 ? 'here' : 'here.below', key: `${n}` }, { n })),
        );
        run.created += MOVED;
      },
      async turn() {
        const to = place === 'here' ? 'there' : 'here';
        // The second request of a pair may come after the first was carried out: then there is nothing to move.
        const { body, isRepeated } = await ok('PATCH', `/namespaces/${place}`, { user_id: user, to });
        expect(isRepeated ? [0, MOVED] : [MOVED]).toContain(body['items']);
        place = to;
        expect(await whereAll()).toBe(place);
        await pause(PAUSE_MS * random());
      },
      async check() {
        expect(await whereAll()).toBe(place);
      },
    };
  }

  /** A caller that fills namespaces with more items than one commit erases, and erases them. */
  function createEraser() {
    let round = 0;
    const user = 'eraser';
    const left = async () => (await ok('GET', `/namespaces?user_id=${user}`)).body.items;
    return {
      begin: undefined,
      async turn() {
        const namespace = `round-${round++}`;
        const keys = Array.from({ length: ERASED }, (_, n) => `${n}`);
        await Promise.all(keys.map((key) => put({ user_id: user, namespace, key }, { key })));
        run.created += ERASED;
        const { body, isRepeated } = await ok('DELETE', `/namespaces/${namespace}?user_id=${user}`);
        if (!isRepeated) expect(body['deleted']).toBe(ERASED);
        run.erased += ERASED;
        expect(await left()).toEqual([]);
      },
      async check() {
        expect(await left()).toEqual([]);
      },
    };
  }

  /** A caller that follows the event feed by its cursor, through all restarts of the service. */
  function createFollower() {
    const seen: Event[] = [];
    let cursor = '';
    let first = '';
    const next = async () => {
      const { body } = await ok('GET', `/events?limit=37&cursor=${cursor}`);
      seen.push(...(body.items as unknown as Event[]));
      cursor = body['cursor'] as string;
      return body['has_more'] as boolean;
    };
    return {
      async begin() {
        first = cursor = (await ok('GET', '/events?cursor=latest')).body['cursor'] as string;
      },
      async follow() {
        while (!run.stopped) if (!(await next())) await pause(PAUSE_MS);
      },
      async check() {
        while (await next());
        const places = seen.map(({ cursor: at }) => parseInt(at.split('.')[1]!, 36));
        expect(places.every((place, index) => index === 0 || place > places[index - 1]!)).toBe(true);

        const byId = Map.groupBy(seen, ({ id }) => id);
        const count = (id: string, kind: string) => (byId.get(id) ?? []).filter((event) => event.kind === kind).length;
        const memories = await readAll();
        for (const { id, version } of memories) {
          expect([id, count(id, 'memory.stored'), count(id, 'memory.updated'), count(id, 'memory.deleted')]).toEqual([
            ...[id, 1, version - 1, 0],
          ]);
        }
        const erased = seen.filter(({ kind }) => kind === 'memory.deleted').map(({ id }) => id);
        expect(new Set(erased).size).toBe(erased.length);
        expect([memories.length + erased.length, erased.length]).toEqual([run.created, run.erased]);

        // Read again from the beginning, the feed is the same but for what became of memories that were erased since.
        const again: Event[] = [];
        for (let at = first, more = true; more;) {
          const { body } = await ok('GET', `/events?limit=1000&cursor=${at}`);
          again.push(...(body.items as unknown as Event[]));
          [at, more] = [body['cursor'] as string, body['has_more'] as boolean];
        }
        const gone = new Set(erased);
        const isLasting = ({ id, kind }: Event) => !gone.has(id) || kind === 'memory.deleted';
        // The name of a user leaves the events with the last memory.
        const told = ({ cursor: at, kind, id }: Event) => ({ at, kind, id });
        expect(again.map(told)).toEqual(seen.filter(isLasting).map(told));
        return `${memories.length} memories, ${erased.length} erased, ${seen.length} events`;
      },
    };
  }

  async function readAll() {
    const all: { readonly id: string; readonly user_id: string; readonly version: number }[] = [];
    for (;;) {
      const { items } = (await ok('GET', `/memory/all?l=1000&u=${all.length}`)).body;
      all.push(...(items as unknown as typeof all));
      if (items.length < 1000) return all;
    }
  }
}
