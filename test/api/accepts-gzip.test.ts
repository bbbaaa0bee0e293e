import { expect, test } from 'vitest';
import { acceptsGzip } from '../../src/api/accepts-gzip.ts';

test.each([
  ['gzip', true],
  ['deflate, gzip;q=0.5, *;q=0', true],
  ['GZIP ; q=1.000', true],
  ['br,gzip', true],
  ['gzip;q=0', false],
  ['br, gzip; q=0.000, deflate', false],
  ['x-gzip-other', false],
  ['identity', false],
  [undefined, false],
])('Accept-Encoding: %s takes gzip: %s', (header, takes) => {
  expect(acceptsGzip({ headers: header === undefined ? {} : { 'accept-encoding': header } })).toBe(takes);
});
