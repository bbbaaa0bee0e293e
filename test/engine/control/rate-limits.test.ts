import path from 'node:path';
import { expect, test } from 'vitest';
import { forgivesSetBackClock } from '../../conformance/rate-limits.ts';
import { tempFolder } from '../../support/temp-folder.ts';

test('a clock that was set back by a day stops no key for longer than an hour', () => {
  expect.hasAssertions();
  forgivesSetBackClock(path.join(tempFolder(), 'cairn.rates.sqlite'));
});
