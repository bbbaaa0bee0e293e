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

/** Stores a tenant's own policy, replacing any earlier one. Throws EngineError `not_found` for an unknown tenant. */
export function putPrivacyPolicy(
  control: Pick<ControlDatabase, 'putSetting'>,
  tenantId: string,
  { secrets, personal }: PrivacyPolicy,
): void {
  control.putSetting(tenantId, SETTING, `secrets=${secrets},personal=${personal}`);
}
