import { expect, test } from 'vitest';
import { line, parseTime } from '../../../src/engine/documents/html-metadata.ts';

test.each([
  ['2024-02-29', '2024-02-29T00:00:00.000Z'],
  ['2024/2/1', '2024-02-01T00:00:00.000Z'],
  ['2024-5', '2024-05-01T00:00:00.000Z'],
  ['2024', '2024-01-01T00:00:00.000Z'],
  ['2024-05-01T10:00:00+02:00', '2024-05-01T08:00:00.000Z'],
])('the time %s is read', (text, time) => {
  expect(new Date(parseTime(text)!).toISOString()).toBe(time);
});

test.each(['2024-13-01', '2023-02-29', '2024-00-10', '2024-04-31', 'yesterday', ''])('%j is no time', (text) => {
  expect(parseTime(text)).toBeNull();
});

test('a title that is cut keeps whole characters', () => {
  expect(line(`${'a'.repeat(1_023)}😀 and more`)).toBe('a'.repeat(1_023));
  expect(line(`${'a'.repeat(1_022)}😀 and more`)).toBe(`${'a'.repeat(1_022)}😀`);
});
