import { expect, test } from 'vitest';
import { parseQueryString } from '../../src/api/query-string.ts';

test.each([
  ['', {}],
  ['a=1&b=two+words&c=%E2%82%AC', { a: '1', b: 'two words', c: '€' }],
  ['tags=a%2Cb&tags=c&tags=d', { tags: ['a,b', 'c', 'd'] }],
  ['a&b=&=c&&d==', { a: '', b: '', '': 'c', d: '=' }],
])('%s', (text, expected) => {
  expect({ ...parseQueryString(text) }).toEqual(expected);
});

test('no name reaches a prototype', () => {
  const parsed = parseQueryString('__proto__=x&constructor=y');
  expect(Object.keys(parsed)).toEqual(['__proto__', 'constructor']);
  expect(({} as Record<string, unknown>)['x']).toBeUndefined();
});

test.each(['a=%', 'a=%zz', '%ff=a', 'a=%ED%A0%80', Array(65).fill('a=1').join('&')])('%.20s is refused', (text) => {
  expect(() => parseQueryString(text)).toThrow(expect.objectContaining({ code: 'invalid' }));
});
