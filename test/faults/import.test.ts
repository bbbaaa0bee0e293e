import { test } from 'vitest';
import { chooseSeed } from '../support/add-checker.ts';
import { inForm } from '../support/fault-form.ts';
import { importUnderKills } from '../support/import-kills.ts';

const plan = { kills: inForm(20), memories: inForm(10_000) };

test(`${plan.kills} kills of the command line during an import lose and double nothing`, async () => {
  await importUnderKills({ ...plan, seed: chooseSeed(), victim: 'command line' });
});

test(`nor do ${plan.kills} kills of the server during an import`, async () => {
  await importUnderKills({ ...plan, seed: chooseSeed(), victim: 'server' });
});
