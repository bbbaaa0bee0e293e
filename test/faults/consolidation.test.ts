import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createRandom } from '../../src/engine/random.ts';
import { chooseSeed } from '../support/add-checker.ts';
import { inForm } from '../support/fault-form.ts';
import { spawnService, type ServiceProcess } from '../support/running-service.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** Topics of each life, each in three memories that say nearly the same. */
const TOPICS = 16;
/** A life lasts at most this long after it was asked to gather. */
const MOMENT_MS = 150;
/** The same, after the undoing was asked for. */
const UNDO_MS = 30;

interface Made {
  readonly id: string;
  readonly memory_id: string | null;
  readonly source_ids: readonly string[];
}

test(`${inForm(20)} kills while memories are gathered: nothing twice, nothing lost`, async () => {
  const seed = chooseSeed();
  const random = createRandom(seed);
  const folder = tempFolder();
  const settings = { OM_LEASE_MS: '2000', OM_VEC_DIM: '256' };
  const added: string[][] = [];
  const gatheredBefore: number[] = [];
  for (let life = 0; life < inForm(20); life++) {
    const service = spawnService({ folder, settings });
    await service.ready;
    if (life > 0) gatheredBefore.push((await listAll(service, `user-${life - 1}`)).length);
    added.push(await addTopics(service, `user-${life}`));
    await service.idle();
    const asked = await service.request('POST', '/consolidations', { body: { user_id: `user-${life}` } });
    expect(asked.status, asked.text).toBe(202);
    await pause(random() * MOMENT_MS);
    await service.end('SIGKILL');
  }
  const service = spawnService({ folder, settings });
  await service.ready;
  const states = await service.idle();
  expect(states).toMatchObject({ dead: 0, cancelled: 0 });
  for (let life = 0; life < inForm(20); life++) {
    const made = await listAll(service, `user-${life}`);
    const sources = made.flatMap(({ source_ids: ids }) => ids);
    expect(new Set(sources).size, 'a source is gathered once').toBe(sources.length);
    expect(made).toHaveLength(TOPICS);
    for (const { memory_id: id } of made.slice(0, 5)) {
      const { body } = await service.request('GET', `/memory/${id}/links`);
      const links = body['items'] as readonly { type?: string }[];
      expect(links.filter(({ type }) => type === 'derived_from')).toHaveLength(3);
    }
    const { body } = await service.request('GET', `/memory/all?user_id=user-${life}&l=1000`);
    const stored = (body['items'] as readonly { id: string }[]).map(({ id }) => id);
    expect(stored.toSorted()).toEqual([...added[life]!, ...made.map(({ memory_id: id }) => id!)].sort());
  }
  await service.end('SIGTERM');
  console.log(
    `seed ${seed}: gathered at the next start after each kill: ${gatheredBefore.join(', ')} of ${TOPICS} each`,
  );
});

test(`${inForm(20)} kills while gathered memories are undone: all of them go, and no source with them`, async () => {
  const seed = chooseSeed();
  const random = createRandom(seed);
  const folder = tempFolder();
  const settings = { OM_LEASE_MS: '2000', OM_VEC_DIM: '256' };
  const added: string[][] = [];
  const runs: string[] = [];
  const left: number[] = [];
  for (let life = 0; life <= inForm(20); life++) {
    const service = spawnService({ folder, settings });
    await service.ready;
    if (life > 0) {
      const before = await listAll(service, `user-${life - 1}`);
      left.push(before.filter(({ memory_id: id }) => id !== null).length);
      // What is undone is undone once: the call is repeated, and ends what the kill broke off.
      const { status, body, text } = await service.request('POST', `/consolidations/${runs.at(-1)}/undo`);
      expect([status, body['undone']], text).toEqual([200, left.at(-1)]);
    }
    if (life === inForm(20)) {
      await service.idle();
      for (const [user, ids] of added.entries()) {
        const made = await listAll(service, `user-${user}`);
        expect(made.map(({ memory_id: id }) => id)).toEqual(Array.from({ length: TOPICS }, () => null));
        const { body } = await service.request('GET', `/memory/all?user_id=user-${user}&l=1000`);
        expect(body.items.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
      }
      await service.end('SIGTERM');
      break;
    }
    added.push(await addTopics(service, `user-${life}`));
    await service.idle();
    const asked = await service.request('POST', '/consolidations?wait=60000', { body: { user_id: `user-${life}` } });
    expect(asked.body, asked.text).toMatchObject({ state: 'done' });
    runs.push(asked.body.job_id);
    const undoing = service.request('POST', `/consolidations/${asked.body.job_id}/undo`).catch(() => undefined);
    await pause(random() * UNDO_MS);
    await service.end('SIGKILL');
    await undoing;
  }
  console.log(`seed ${seed}: gathered memories that each kill left: ${left.join(', ')} of ${TOPICS} each`);
});

async function addTopics(service: ServiceProcess, user: string): Promise<string[]> {
  const items = Array.from({ length: TOPICS }, (_, topic) => topicOf(topic)).flatMap((text) =>
    [`${text}.`, `${text} again.`, `${text} again and once more.`].map((content) => ({ content, user_id: user })),
  );
  const { status, body, text } = await service.request('POST', '/memory/add/batch', { body: { items } });
  expect(status, text).toBe(202);
  return (body['results'] as { id: string }[]).map(({ id }) => id);
}

/** A sentence whose words no other topic has. */
function topicOf(topic: number): string {
  const word = (place: number) =>
    [...`${(topic + 1) * 7919 + place * 104_729}`].map((digit) => 'abdefgklmn'[Number(digit)]).join('o');
  return Array.from({ length: 9 }, (_, place) => word(place)).join(' ');
}

async function listAll(service: ServiceProcess, user: string): Promise<Made[]> {
  const { body } = await service.request('GET', `/consolidations?user_id=${user}&l=1000`);
  return body['items'] as unknown as Made[];
}
