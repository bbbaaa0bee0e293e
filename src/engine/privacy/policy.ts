import {
  PRIVACY_MODES,
  SENSITIVE_GROUPS,
  SENSITIVE_KINDS,
  type PrivacyMode,
  type PrivacyPolicy,
  type SensitiveGroup,
  type SensitiveKind,
} from '../types.ts';

/** The policy with which nothing is screened. */
const ALL_OFF: PrivacyPolicy = { secrets: 'off', personal: 'off' };

/**
 * Parses a privacy policy: one mode for both groups (secrets and personal values), such as `redact`, or a mode for
 * each, such as `secrets=redact,personal=mark`; a group that is not named is off. Returns undefined for any other text.
 */
export function parsePolicy(text: string): PrivacyPolicy | undefined {
  const isMode = (name: string | undefined): name is PrivacyMode => PRIVACY_MODES.some((mode) => mode === name);
  if (isMode(text)) return { secrets: text, personal: text };
  const policy: Record<SensitiveGroup, PrivacyMode> = { ...ALL_OFF };
  for (const part of text.split(',')) {
    const [name, mode, ...rest] = part.split('=').map((word) => word.trim());
    const group = SENSITIVE_GROUPS.find((known) => known === name);
    if (group === undefined || !isMode(mode) || rest.length > 0) return undefined;
    policy[group] = mode;
  }
  return policy;
}

/** Lists the groups of sensitive values that a policy screens: those whose mode is not `off`. */
export function groupsOf(policy: PrivacyPolicy): SensitiveGroup[] {
  return SENSITIVE_GROUPS.filter((group) => policy[group] !== 'off');
}

const PERSONAL: ReadonlySet<SensitiveKind> = new Set(SENSITIVE_KINDS.personal);

/** Returns the group (secrets or personal values) of a kind of sensitive value. */
export function groupOf(kind: SensitiveKind): SensitiveGroup {
  return PERSONAL.has(kind) ? 'personal' : 'secrets';
}
