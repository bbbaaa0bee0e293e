import { test } from 'vitest';
import { chooseSeed } from '../support/add-checker.ts';
import { reembedUnderKills, reembedWithWorkers } from '../support/reembed-kills.ts';
import { canStartRedis } from '../support/redis.ts';

test('killed outright while the model changes, the service goes on from there and mixes nothing', async () => {
  console.log(await reembedUnderKills({ seed: chooseSeed(), kills: 3, memories: 120, onceLive: false, adds: 2 }));
});

test.skipIf(!canStartRedis())('workers that share queues change the model together', async () => {
  await reembedWithWorkers({ seed: chooseSeed(), memories: 120 });
});
