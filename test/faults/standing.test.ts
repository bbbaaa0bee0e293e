import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createRandom } from '../../src/engine/random.ts';
import { chooseSeed } from '../support/add-checker.ts';
import { inForm } from '../support/fault-form.ts';
import { spawnService } from '../support/running-service.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { startReceiver } from '../support/webhook-receiver.ts';

/** Memories added in each life, of which every second one answers. */
const ADDED = 20;
/** A life lasts at most this long after its adds. */
const MOMENT_MS = 400;

test(`${inForm(20)} kills while answers are told: none is lost, and each has one webhook-id`, async () => {
  const seed = chooseSeed();
  const random = createRandom(seed);
  const folder = tempFolder();
  await using receiver = await startReceiver();
  const settings = { OM_WEBHOOK_ALLOW: '127.0.0.1', OM_LEASE_MS: '2000', OM_WEBHOOK_ATTEMPTS: '20' };
  const expected = new Set<string>();
  let standing = '';
  for (let life = 0; life <= inForm(20); life++) {
    const service = spawnService({ folder, settings });
    await service.ready;
    if (life === 0) {
      const body = { query: 'Which berth has the ferry Aurora?', webhook: { url: receiver.url } };
      standing = String((await service.request('POST', '/standing', { body })).body['id']);
    }
    for (let count = 0; count < ADDED; count++) {
      const content =
        count % 2 === 0 ? `The ferry Aurora has berth ${life}-${count}.` : `Nobody fed cat ${life}-${count}.`;
      const { status, body } = await service.request('POST', '/memory/add', { body: { content } });
      expect(status).toBe(202);
      if (count % 2 === 0) expected.add(String(body['id']));
      // Some receivers fail; what they were sent is sent again.
      if (random() < 0.2) receiver.answers.push(500);
    }
    if (life === inForm(20)) {
      await expect.poll(() => idsOf().size, { timeout: 240_000, interval: 200 }).toBe(expected.size);
      const { body } = await service.request('GET', `/standing/${standing}`);
      expect(body['answers']).toBe(expected.size);
      await service.end('SIGTERM');
    } else {
      await pause(random() * MOMENT_MS);
      await service.end('SIGKILL');
    }
  }
  // Each memory has one id, however often it was sent.
  const idsByMemory = new Map<string, Set<string>>();
  for (const { id, body } of receiver.messages) {
    const memory = String(body.data['id']);
    idsByMemory.set(memory, (idsByMemory.get(memory) ?? new Set()).add(id));
  }
  expect([...idsByMemory.values()].filter((ids) => ids.size > 1)).toEqual([]);
  expect(idsOf()).toEqual(expected);
  console.log(`seed ${seed}: ${expected.size} answers in ${receiver.messages.length} messages`);

  function idsOf(): Set<string> {
    return new Set(receiver.messages.map(({ body }) => String(body.data['id'])));
  }
});
