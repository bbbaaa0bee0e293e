import { test } from 'vitest';
import { chooseSeed } from '../support/add-checker.ts';
import { ingestUnderKills } from '../support/document-kill-loop.ts';

test('killed outright while a document is read, the service never shows half of it and reads it to its end', async () => {
  await ingestUnderKills({ seed: chooseSeed(), kills: 4, sections: 100 });
});
