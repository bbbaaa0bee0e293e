import { test } from 'vitest';
import { chooseSeed } from '../support/add-checker.ts';
import { ingestUnderKills } from '../support/document-kill-loop.ts';
import { inForm } from '../support/fault-form.ts';

test(`${inForm(30)} kills while long documents are read leave no half document and no chunk twice`, async () => {
  await ingestUnderKills({ seed: chooseSeed(), kills: inForm(30), sections: 750 });
});
