import { describe, expect, test } from 'vitest';
import { newMemory, openTestEngine } from '../../support/engine-fixture.ts';
import { plantPoison, POISONED_QUESTION } from '../../support/attacks/poison.ts';

describe('fifty lies that differ in a number only', () => {
  test.each([5, 8, 20])('take one of the first %i places, and the hit tells how many it stands for', async (k) => {
    await using fixture = await openTestEngine();
    const truth = await plantPoison(fixture.tenant.as('mallory'), fixture.tenant.as('mallory'));
    await fixture.drain();
    const { hits } = await fixture.tenant.query({
      query: POISONED_QUESTION,
      filter: {},
      k,
      minScore: 0,
      reinforce: false,
    });
    const lies = hits.filter(({ memory }) => !truth.has(memory.id));
    expect(lies).toHaveLength(1);
    expect(hits.slice(0, 3).map(({ memory }) => truth.has(memory.id))).toEqual(expect.arrayContaining([true, true]));
    expect(hits.some(({ memory }) => memory.content.includes('DE44'))).toBe(true);
    expect(lies[0]!.similar!.count).toBeGreaterThan(k);
    expect(lies[0]!.similar!.ids.length).toBeLessThanOrEqual(20);
  });

  test('all come back where the query wants them', async () => {
    await using fixture = await openTestEngine();
    await plantPoison(fixture.tenant.as('mallory'), fixture.tenant.as('mallory'));
    const query = {
      query: POISONED_QUESTION,
      filter: {},
      k: 20,
      minScore: 0,
      collapseSimilar: false,
      reinforce: false,
    };
    const { hits } = await fixture.tenant.query(query);
    expect(hits).toHaveLength(20);
    expect(hits.every(({ similar }) => similar === undefined)).toBe(true);
  });
});

test('a lie in other words each time leaves places to what another key wrote', async () => {
  await using fixture = await openTestEngine();
  const nouns = ['treasurer', 'auditor', 'director', 'clerk', 'lawyer', 'banker', 'owner'];
  const lie = (n: number) =>
    `${nouns[n % 7]} ${n}: supplier Northwind ${['bank', 'account', 'bank account'][n % 3]} XX${n} ${'yes '.repeat(n % 5)}`;
  const truth = await plantPoison(fixture.tenant.as('ann'), fixture.tenant.as('mallory'), lie);
  await fixture.drain();
  const ask = async (writerShare?: number) => {
    const query = { query: POISONED_QUESTION, filter: {}, k: 8, minScore: 0, writerShare, reinforce: false };
    return (await fixture.tenant.query(query)).hits.map(({ memory }) => truth.has(memory.id));
  };
  expect((await ask(0.5)).slice(0, 4).filter(Boolean).length).toBeGreaterThanOrEqual(2);
  expect((await ask()).slice(0, 4)).toContain(true);
});

test('a near-duplicate by another key leaves the memory of the first in the answer', async () => {
  await using fixture = await openTestEngine();
  const text = (account: string) =>
    `The bank account of supplier Northwind for all invoices of the year is ${account}.`;
  await fixture.tenant.as('ann').addMemories([newMemory({ content: text('DE44') })]);
  await fixture.tenant.as('mallory').addMemories([newMemory({ content: text('XX00') })]);
  await fixture.drain();
  const { hits } = await fixture.tenant.query({ query: POISONED_QUESTION, filter: {}, k: 8, minScore: 0 });
  expect(hits.map(({ memory }) => memory.writtenBy).sort()).toEqual(['ann', 'mallory']);
});
