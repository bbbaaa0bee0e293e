import { expect, test } from 'vitest';
import { readLimits } from '../../../src/engine/control/provider-limit-headers.ts';

const NOW = Date.UTC(2026, 10, 21);
const read = (headers: Record<string, string>) => readLimits(new Headers(headers), NOW);

test("OpenAI's headers say what is left of requests and tokens, and when both begin anew", () => {
  expect(
    read({
      'x-ratelimit-limit-requests': '3000',
      'x-ratelimit-remaining-requests': '2999',
      'x-ratelimit-reset-requests': '20ms',
      'x-ratelimit-limit-tokens': '1000000',
      'x-ratelimit-remaining-tokens': '0',
      'x-ratelimit-reset-tokens': '6m0s',
    }),
  ).toEqual({
    requests: { limit: 3000, remaining: 2999, resetMs: 20 },
    tokens: { limit: 1_000_000, remaining: 0, resetMs: 360_000 },
  });
});

test.each([
  ['1s', 1_000],
  ['1m30.5s', 90_500],
  ['59m59s', 3_599_000],
  ['0s', 0],
  ['17', 17_000],
  ['0.25', 250],
  [String(NOW / 1_000 + 30), 30_000],
  [String(NOW + 1_500), 1_500],
  [new Date(NOW + 45_000).toISOString(), 45_000],
  [new Date(NOW - 45_000).toISOString(), 0],
  ['3h', 3_600_000],
  ['99999999h', 3_600_000],
])('a reset of %s is in %i ms, an hour at most', (spelled, ms) => {
  const { requests } = read({ 'x-ratelimit-remaining-requests': '1', 'x-ratelimit-reset-requests': spelled });
  expect(requests).toEqual({ limit: undefined, remaining: 1, resetMs: ms });
});

test.each<[string, Record<string, string>]>([
  ['of three', { 'ratelimit-limit': '100, 100;w=60', 'ratelimit-remaining': '5', 'ratelimit-reset': '50' }],
  ['in one', { ratelimit: 'limit=100, remaining=5, reset=50' }],
  [
    'of servers that count requests only',
    { 'x-ratelimit-limit': '100', 'x-ratelimit-remaining': '5', 'x-ratelimit-reset': '50' },
  ],
])('the form %s is read, as requests', (_name, headers) => {
  expect(read(headers)).toEqual({ requests: { limit: 100, remaining: 5, resetMs: 50_000 }, tokens: undefined });
});

test('of several policies in one header the first counts', () => {
  expect(read({ ratelimit: '"burst";r=5;t=50, "day";r=4000;t=80000' }).requests).toEqual({
    limit: undefined,
    remaining: 5,
    resetMs: 50_000,
  });
});

test.each<[string, Record<string, string>]>([
  ['nothing', {}],
  ['no reset', { 'x-ratelimit-remaining-requests': '0' }],
  ['no number', { 'x-ratelimit-remaining-requests': 'few', 'x-ratelimit-reset-requests': '1s' }],
  ['less than nothing', { 'x-ratelimit-remaining-requests': '-1', 'x-ratelimit-reset-requests': '1s' }],
  ['a reset that is none', { 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': 'soon' }],
  ['an endless number', { 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': '9'.repeat(400) }],
  [
    'a limit of 0, which some send where there is none',
    { 'x-ratelimit-limit-requests': '0', 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': '60' },
  ],
])('%s says nothing', (_name, headers) => {
  expect(read(headers)).toEqual({ requests: undefined, tokens: undefined });
});
