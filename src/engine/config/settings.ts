import { z } from 'zod';
import { ADVANCED_SETTINGS } from './advanced-settings.ts';
import { CORE_SETTINGS } from './core-settings.ts';

/**
 * The schema of all settings, with defaults, units and bounds. The core settings come first, then the advanced ones by
 * subject. A name that is missing takes the default; `readConfig` leaves out empty and blank variables, so that they do
 * as well; `0` and `false` are values. A test compares `.env.example` with this table. Most names begin with `OM_`, the
 * prefix of OpenMemory: Cairn keeps its names, so that existing deployments move over unchanged.
 */
export const settingsSchema = z.object({ ...CORE_SETTINGS, ...ADVANCED_SETTINGS });

/** The values of all settings by the names of their variables, checked one by one but not together. */
export type Settings = z.infer<typeof settingsSchema>;
