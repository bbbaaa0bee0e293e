import { expect, test } from 'vitest';
import { createRepeatedHits } from '../../../src/engine/retrieve/repeated-hits.ts';
import { createWorkBudget, runWithin } from '../../../src/engine/store/work-budget.ts';
import type { Memory } from '../../../src/engine/types.ts';

const memory = (content: string, more: object = {}) =>
  ({ id: content, userId: 'ana', writtenBy: 'key-1', title: '', content, ...more }) as Memory;
/** Whether the second of two memories is taken for a repetition of the first. */
function repeats(first: Memory, second: Memory): boolean {
  const near = createRepeatedHits(true);
  near.take(first);
  return near.isRepeated(second);
}

const SAID = 'the nightly backup of the harbour ledger ended well at 03:10 with 4096 rows on server db1';

test('texts that differ in numbers only say nearly the same', () => {
  expect(repeats(memory(SAID), memory(SAID.replace('4096', '5120')))).toBe(true);
  expect(repeats(memory(SAID), memory(SAID.toUpperCase()))).toBe(true);
});

test('what repeats a hit that gave way counts as repeating the hit in its place', () => {
  const near = createRepeatedHits(true);
  const similar = near.take(memory(SAID));
  const early = memory(SAID.replace('4096', '5120'));
  const late = memory(SAID.replace('4096', '6144'));
  expect(near.isRepeated(early)).toBe(true);
  const inItsPlace = near.take(memory('a chunk with other words'), similar);
  expect(near.isRepeated(late)).toBe(true);
  expect(inItsPlace).toEqual([early.id, late.id]);
});

test.each([
  ['a denial', SAID.replace('ended well', 'has not ended well')],
  ['another name', SAID.replace('harbour', 'airport')],
  ['a word more', `${SAID} again`],
])('%s is no repetition, whichever comes first', (_name, other) => {
  expect(repeats(memory(SAID), memory(other))).toBe(false);
  expect(repeats(memory(other), memory(SAID))).toBe(false);
});

test.each(['2', '๒'])('a run of Thai with the digit %s is no number, as its words may differ', (digit) => {
  const said = (what: string) => memory(`คุณหมอ สั่งว่า หลัง อาหาร เช้า ทุก วัน จันทร์ ${what}กินยา${digit}เม็ด`);
  expect(repeats(said('ต้อง'), said('ห้าม'))).toBe(false);
  const dose = (pills: number) => memory(`คุณหมอ สั่งว่า หลัง อาหาร เช้า ทุก วัน จันทร์ กินยา${pills}เม็ด`);
  expect(repeats(dose(2), dose(3))).toBe(true);
});

test('long texts are not compared, as their ends could differ', () => {
  const long = `${SAID} `.repeat(30);
  expect(repeats(memory(`${long} and all was well`), memory(`${long} and all was lost`))).toBe(false);
});

test('only memories of one user that one key wrote are compared', () => {
  expect(repeats(memory(SAID), memory(SAID, { userId: 'ben' }))).toBe(false);
  expect(repeats(memory(SAID), memory(SAID, { writtenBy: 'key-2' }))).toBe(false);
  expect(repeats(memory(SAID, { writtenBy: null }), memory(SAID, { writtenBy: null }))).toBe(false);
});

test('comparisons take from the work budget, and end with it', () => {
  const codes = (first: number) => Array.from({ length: 250 }, (_, no) => `a${first + no}`).join(' ');
  const others = Array.from({ length: 50 }, (_, no) => memory(codes(1_000 * no)));
  const same = memory(`${codes(0)} b1`);
  const [first, ...further] = others;
  const compare = (known: readonly Memory[], bytes: number) => {
    const budget = createWorkBudget({ bytes, deadlineMs: 1_000_000 });
    const near = createRepeatedHits(true);
    const isRepeated = runWithin(budget, () => {
      for (const one of known) near.take(one);
      return near.isRepeated(same);
    });
    return [isRepeated, budget.end];
  };
  expect(compare([...further, first!], 1_000_000)).toEqual([true, null]);
  expect(compare([...further, first!], 100_000)).toEqual([false, 'work_budget']);
  expect(compare([first!, ...further], 100_000)).toEqual([true, null]);
});
