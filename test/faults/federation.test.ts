import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createRandom } from '../../src/engine/random.ts';
import { chooseSeed } from '../support/add-checker.ts';
import { inForm } from '../support/fault-form.ts';
import { spawnService } from '../support/running-service.ts';
import { newKey } from '../support/sealed-folder.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** A life ends within this time after one of its first registrations. */
const MOMENT_MS = 20;
const FIRST = 12;

test(`${inForm(20)} kills while servers are registered and removed: what was answered holds, with one record each`, async () => {
  const seed = chooseSeed();
  const random = createRandom(seed);
  const folder = tempFolder();
  const settings = { OM_ENCRYPTION_KEY: newKey() };
  /** Servers that were answered for; null for one whose request had no answer, so that it may be there or not. */
  const known = new Map<string, boolean | null>();
  for (let life = 0; life <= inForm(20); life++) {
    const service = spawnService({ folder, settings });
    await service.ready;
    const { items } = (await service.request('GET', '/federation/servers')).body as unknown as {
      readonly items: readonly { readonly name: string; readonly has_key: boolean }[];
    };
    const names = new Set(items.map(({ name }) => name));
    for (const [name, isThere] of known) if (isThere !== null) expect([name, names.has(name)]).toEqual([name, isThere]);
    expect(items.every(({ has_key: hasKey }) => hasKey)).toBe(true);
    for (const name of known.keys()) known.set(name, names.has(name));
    const records = (await service.request('GET', '/audit?of=service&limit=1000')).body.items as unknown as {
      readonly action: string;
      readonly detail: { readonly server?: string };
    }[];
    for (const [name, isThere] of known) {
      const actions = records.filter(({ detail }) => detail.server === name).map(({ action }) => action);
      const wanted = isThere ? ['federation.add'] : ['federation.remove', 'federation.add'];
      expect([name, actions.length === 0 && !isThere ? wanted : actions]).toEqual([name, wanted]);
    }
    if (life === inForm(20)) {
      await service.end('SIGTERM');
      continue;
    }
    const last = Math.floor(random() * FIRST);
    let end: Promise<unknown> = Promise.resolve();
    for (let count = 0; service.obituary === undefined && count < 1_000; count++) {
      // A tenant has at most 32 servers, so each one leaves again but the first of a life.
      const name = `server-${life}-${count}`;
      const body = { name, url: 'https://memory.example.com', key: `key-of-${name}` };
      if (count === last) end = pause(random() * MOMENT_MS).then(() => service.end('SIGKILL'));
      known.set(name, null);
      const added = await service.request('POST', '/federation/servers', { body }).catch(() => undefined);
      if (added === undefined) break;
      expect(added.status).toBe(201);
      known.set(name, true);
      if (count === 0) continue;
      known.set(name, null);
      const removed = await service.request('DELETE', `/federation/servers/${name}`).catch(() => undefined);
      if (removed === undefined) break;
      known.set(name, false);
    }
    await end;
  }
  console.log(`seed ${seed}: ${known.size} servers`);
});
