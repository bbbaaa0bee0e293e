/** What memories were may be much longer than what they are now: no read of the past takes more for it. */

import { test } from 'vitest';
import { pastExport, pastHits, pastNeighbours, pastSizes } from '../../conformance/past-sizes.ts';
import { pastVectors } from '../../conformance/past-vectors.ts';
import { openTestEngine } from '../../support/engine-fixture.ts';

test('lists and differences of an earlier time end at the size that memories had then', async () => {
  await using fixture = await openTestEngine();
  await pastSizes(fixture);
});

test('the hits of a query about an earlier time have at most 6 MiB as they were then', async () => {
  await using fixture = await openTestEngine();
  await pastHits(fixture);
});

test('the neighbours of hits of an earlier time have at most 4 MiB as they were then', async () => {
  await using fixture = await openTestEngine();
  await pastNeighbours(fixture);
});

test('an export is read in parts, however long the earlier values of its memories are', async () => {
  await using fixture = await openTestEngine();
  await pastExport(fixture);
});

test('an export has no vectors of texts that were written after it began', async () => {
  await using fixture = await openTestEngine();
  await pastVectors(fixture);
});
