import { onTestFinished, test } from 'vitest';
import { chooseSeed } from '../support/add-checker.ts';
import { startFakeProvider } from '../support/fake-provider.ts';
import { addUnderKills } from '../support/kill-loop.ts';

test('50 kills during 5,000 adds lose and double nothing', async () => {
  await addUnderKills({ seed: chooseSeed(), kills: 50, adds: 5_000, concurrency: 16 });
});

test('nor do 25 kills while a provider embeds', async () => {
  const provider = await startFakeProvider({ dimensions: 256 });
  onTestFinished(() => provider.close());
  provider.setMode('slow', { delayMs: 30 });
  await addUnderKills({
    seed: chooseSeed(),
    kills: 25,
    adds: 2_500,
    concurrency: 16,
    settings: { OM_EMBEDDINGS: 'openai', OM_OPENAI_BASE_URL: provider.url },
  });
  console.log(`${provider.calls.length} calls to the provider for ${provider.texts} texts`);
});
