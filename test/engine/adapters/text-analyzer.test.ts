import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import type { TestEngine } from '../../support/engine-fixture.ts';
import { newMemory, openTestEngine } from '../../support/engine-fixture.ts';

/**
 * Starts an analyzer that finds nothing, and answers a text once `mayAnswer` allows it.
 * @returns its URL, and the texts that it was asked about, in their order
 */
async function startAnalyzer(statusOf: (text: string) => number, mayAnswer = async (_text: string) => {}) {
  const asked: string[] = [];
  const server = http.createServer((request, response) => {
    request.toArray().then(
      (parts) => {
        const { text } = JSON.parse(Buffer.concat(parts).toString()) as { text: string };
        asked.push(text);
        void mayAnswer(text).then(() => {
          response.writeHead(statusOf(text), { 'content-type': 'application/json' }).end('[]');
        });
      },
      () => response.destroy(),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

async function openWith(url: string): Promise<TestEngine> {
  const settings = { OM_EMBEDDINGS: 'none', OM_PII: 'personal=redact', OM_PII_URL: url, OM_PII_TIMEOUT_MS: '60000' };
  const fixture = await openTestEngine({ settings });
  onTestFinished(() => fixture.close());
  fixture.engine.control.createTenant('acme');
  return fixture;
}

/** Answers all that is held and all that comes until `end`. */
async function answerAll(end: Promise<unknown>, held: (() => void)[]): Promise<void> {
  const timer = setInterval(() => held.splice(0).forEach((answer) => answer()), 1);
  await end;
  clearInterval(timer);
}

const texts = (name: string, count: number) => Array.from({ length: count }, (_, no) => `${name} ${no}`);

test('a tenant with many texts leaves room in the queue to the others', async () => {
  const few = texts('few', 2);
  const held: (() => void)[] = [];
  const { url, asked } = await startAnalyzer(
    () => 200,
    (text) => new Promise((answer) => void (few.includes(text) ? answer() : held.push(answer))),
  );
  const { engine, tenant } = await openWith(url);
  const acme = await engine.tenant('acme');
  const many = texts('many', 60).map((content) => tenant.addMemories([newMemory({ content })]));
  await expect.poll(() => held.length).toBe(8);
  const added = few.map((content) => acme.addMemories([newMemory({ content })]));
  // Each place that becomes free goes to the other tenant, once its adds wait.
  while (!few.every((text) => asked.includes(text)) && asked.length < 60) {
    held.shift()?.();
    await delay(20);
  }
  const next = asked.length;
  await answerAll(Promise.all([...many, ...added]), held);
  expect(asked).toHaveLength(62);
  expect(next).toBeLessThan(60);
});

test('a text that the analyzer cannot read ends the adds of its tenant alone', async () => {
  const { url, asked } = await startAnalyzer((text) => (text.includes('spoiled') ? 500 : 200));
  const { engine, tenant } = await openWith(url);
  const acme = await engine.tenant('acme');
  const add = (to: typeof tenant, content: string) => to.addMemories([newMemory({ content })]);
  await expect(add(tenant, 'spoiled')).rejects.toMatchObject({ code: 'unavailable' });
  await expect(add(tenant, 'another')).rejects.toMatchObject({ code: 'unavailable' });
  await add(acme, 'of acme');
  expect(asked).toEqual(['spoiled', 'of acme']);
});

test('a clock that is set back does not make an analyzer rest longer that failed once', async () => {
  let status = 500;
  const { url, asked } = await startAnalyzer(() => status);
  const { tenant, clock } = await openWith(url);
  const add = (content: string) => tenant.addMemories([newMemory({ content })]);
  await expect(add('one')).rejects.toMatchObject({ code: 'unavailable' });
  status = 200;
  await expect(add('two')).rejects.toMatchObject({ code: 'unavailable' });
  clock.advance(-3_600_000);
  await add('three');
  expect(asked).toEqual(['one', 'three']);
});
