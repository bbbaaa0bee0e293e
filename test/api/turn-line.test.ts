import { expect, test, vi } from 'vitest';
import { createTurnLine } from '../../src/api/turn-line.ts';
import { noteConnection } from '../../src/engine/turns.ts';

test('while connections arrive, many of them are accepted between two turns of lines, which share their turns', async () => {
  // By this clock 0.1 ms pass between two looks, as each work and each look at connections makes one.
  let now = performance.now();
  vi.spyOn(performance, 'now').mockImplementation(() => (now += 0.1));
  let turn = 0;
  let isDone = false;
  const accept = () => {
    turn += 1;
    noteConnection();
    if (!isDone) setImmediate(accept);
  };
  setImmediate(accept);
  const workedIn: number[] = [];
  const works = [createTurnLine(), createTurnLine()].flatMap((line) =>
    Array.from({ length: 300 }, () => line.wait('a network').then(() => void workedIn.push(turn))),
  );
  await Promise.all(works);
  isDone = true;
  vi.restoreAllMocks();
  const turns = [...new Set(workedIn)];
  expect(turns.length).toBeGreaterThan(5);
  // Every turn of work is followed by several in which nothing but connections is taken.
  expect(turn / turns.length).toBeGreaterThan(5);
});
