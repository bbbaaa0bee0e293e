import type { Config } from '../config.ts';
import { parsePolicy } from '../privacy/policy.ts';
import type { PrivacyPolicy } from '../types.ts';
import type { ControlDatabase } from './control-database.ts';

/** Name of the setting in the control database that holds a tenant's own policy, as text. */
const SETTING = 'privacy';

/** Returns the privacy policy that a tenant has stored, or that of `OM_PII` if it has none. */
export function readPrivacyPolicy(
  control: Pick<ControlDatabase, 'getSetting'>,
  config: Pick<Config, 'OM_PII'>,
  tenantId: string,
): PrivacyPolicy {
  return parsePolicy(control.getSetting(tenantId, SETTING) ?? config.OM_PII)!;
}

/** Returns the name and the value of the setting that stores a tenant's own policy. */
export function privacySetting({ secrets, personal }: PrivacyPolicy): [name: string, value: string] {
  return [SETTING, `secrets=${secrets},personal=${personal}`];
}
