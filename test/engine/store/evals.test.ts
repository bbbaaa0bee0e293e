import { expect, test } from 'vitest';
import { eraseEvalItems, getEval, putEval } from '../../../src/engine/store/evals.ts';
import { EVAL_LIMITS } from '../../../src/engine/types.ts';
import { openTestEngine, START } from '../../support/engine-fixture.ts';

const item = (userId: string, length: number) => ({ query: 'x'.repeat(length), userId, expected: ['berth 4'] });

test('items about users are erased a megabyte a commit, each once', async () => {
  await using fixture = await openTestEngine();
  const { tenant, store } = fixture;
  const ofAna = Array.from({ length: 30 }, () => item('ana', 100_000));
  const ofBen = [item('ben', 10), item('ben', 10)];
  store.write(() => putEval(store, { name: 'home', guard: false, items: [...ofBen, ...ofAna] }, START));
  const erase = (...userIds: string[]) => store.write(() => eraseEvalItems(store, userIds));
  expect(erase('ana', 'cem')).toEqual({ items: 11, isDone: false });
  await tenant.deleteMemories({ userIds: ['ana'] });
  expect(getEval(store, 'home').items).toEqual(ofBen);
  expect([erase('ana'), erase('ben')]).toEqual([
    { items: 0, isDone: true },
    { items: 2, isDone: true },
  ]);
});

test('a tenant with more than its evaluation sets may hold puts a smaller set in place of a larger one', async () => {
  await using fixture = await openTestEngine();
  const { store } = fixture;
  const put = (name: string, length: number) =>
    store.write(() => putEval(store, { name, guard: false, items: [item('ana', length)] }, START));
  put('home', 1_000);
  put('large', 1);
  const grow = `UPDATE eval_items SET item = json_object('query', printf('%.*c', ?, 'x'), 'expected', json_array())
    WHERE set_no = (SELECT set_no FROM eval_sets WHERE name = 'large')`;
  store.write(() => store.prepare(grow).run(EVAL_LIMITS.bytes));
  put('home', 100);
  expect(() => put('home', 200)).toThrow('the evaluation sets of a tenant');
});
