import { expect, test } from 'vitest';
import { createParserChildren } from '../../../src/engine/adapters/parser-children.ts';
import type { ParserProcess } from '../../../src/engine/adapters/parser-process.ts';
import { EngineError } from '../../../src/engine/errors.ts';

/** A child that does nothing. */
const idleChild = (): ParserProcess => ({
  isUsable: () => true,
  heldMb: () => 0,
  read: () => new Promise(() => {}),
  stop: async () => {},
  ended: new Promise(() => {}),
});

test('a spare child that cannot be started fails no document, and the taken child is used again', async () => {
  let left = 2;
  const start = () => {
    left -= 1;
    if (left < 0) throw new EngineError('unavailable', 'no process to read documents could be started');
    return idleChild();
  };
  const children = createParserChildren({ start, size: 2, idleMs: 60_000 });
  const first = children.take('ana');
  const second = children.take('ben');
  children.giveBack(first);
  children.giveBack(second);
  expect([children.take('ana'), children.take('ben')]).toEqual([first, second]);
  expect(() => children.take('cem')).toThrow(expect.objectContaining({ code: 'unavailable' }));
  left = 2;
  const third = children.take('cem');
  children.giveBack(third);
  expect(children.take('cem')).toBe(third);
  expect(left).toBe(0);
  await children.close();
});
