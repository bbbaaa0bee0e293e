import { test } from 'vitest';
import { chooseSeed } from '../support/add-checker.ts';
import { inForm } from '../support/fault-form.ts';
import { reembedUnderKills } from '../support/reembed-kills.ts';

test(`${inForm(20)} kills while the model changes: all is embedded anew, nothing is mixed`, async () => {
  console.log(
    await reembedUnderKills({ seed: chooseSeed(), kills: inForm(20), memories: 600, onceLive: false, adds: 10 }),
  );
});

test(`nor do ${inForm(8)} kills while links are measured anew and the old vectors go`, async () => {
  console.log(
    await reembedUnderKills({ seed: chooseSeed(), kills: inForm(8), memories: 2_500, onceLive: true, adds: 1 }),
  );
});
