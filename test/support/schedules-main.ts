/**
 * A separate process that runs the schedules that are due in the default tenant of `OM_DB_PATH` at the time `CAIRN_NOW`
 * (Unix ms): evaluation sets, and maintenance. It prints `begun` before and `done` after.
 */
import { readConfig } from '../../src/engine/config.ts';
import { createMetrics } from '../../src/engine/metrics.ts';
import { openEngine } from '../../src/engine/open-engine.ts';
import { openParts } from '../../src/engine/parts/engine-parts.ts';
import { silentLogger } from '../../src/engine/ports.ts';
import { runDueSchedules } from '../../src/engine/upkeep/schedules.ts';

const config = readConfig(process.env);
const [base, started] = [Number(process.env['CAIRN_NOW']), Date.now()];
const clock = { now: () => base + (Date.now() - started) };
const metrics = createMetrics();
const engine = await openEngine({ config, clock, writer: 'inline' });
const parts = openParts({ config, clock, metrics, role: 'worker', onCall: () => {} });
const tenant = await engine.tenant('default');
process.send?.('begun');
await tenant.runDueEvals();
const open = () => parts.pool.get(config.paths.defaultTenant);
await runDueSchedules({ open, config, clock, metrics, logger: silentLogger });
await engine.close();
parts.pool.close();
process.send?.('done');
process.disconnect();
