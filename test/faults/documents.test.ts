import { test } from 'vitest';
import { chooseSeed } from '../support/add-checker.ts';
import { ingestUnderKills } from '../support/document-kill-loop.ts';

test('30 kills while documents of 500 chunks are read leave no half document and no chunk twice', async () => {
  await ingestUnderKills({ seed: chooseSeed(), kills: 30, sections: 750 });
});
