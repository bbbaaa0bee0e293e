import { onTestFinished, test } from 'vitest';
import { chooseSeed } from '../support/add-checker.ts';
import { startFakeProvider } from '../support/fake-provider.ts';
import { inForm } from '../support/fault-form.ts';
import { addUnderKills } from '../support/kill-loop.ts';

test(`${inForm(50)} kills during ${inForm(5_000)} adds lose and double nothing`, async () => {
  await addUnderKills({ seed: chooseSeed(), kills: inForm(50), adds: inForm(5_000), concurrency: 16 });
});

test(`nor do ${inForm(25)} kills while a provider embeds`, async () => {
  const provider = await startFakeProvider({ dimensions: 256 });
  onTestFinished(() => provider.close());
  provider.setMode('slow', { delayMs: 30 });
  await addUnderKills({
    seed: chooseSeed(),
    kills: inForm(25),
    adds: inForm(2_500),
    concurrency: 16,
    settings: { OM_EMBEDDINGS: 'openai', OM_OPENAI_BASE_URL: provider.url },
  });
  console.log(`${provider.calls.length} calls to the provider for ${provider.texts} texts`);
});
