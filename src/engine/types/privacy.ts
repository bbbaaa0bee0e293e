import type { Caller } from './callers.ts';

/** The two groups of sensitive values. Each group has a mode of its own. */
export const SENSITIVE_GROUPS = ['secrets', 'personal'] as const;
/**
 * Names a group of sensitive values: `secrets` give access to something, such as keys, passwords and tokens; `personal`
 * values identify a person, such as addresses, numbers and names.
 */
export type SensitiveGroup = (typeof SENSITIVE_GROUPS)[number];

/** The ways to treat a group of sensitive values; `PrivacyMode` says what they mean. */
export const PRIVACY_MODES = ['off', 'mark', 'redact', 'refuse'] as const;
/**
 * Says what is done with a text that has sensitive values before it is stored. `off`: they are not looked for. `mark`:
 * the text is stored as it is, with the kinds of its values in `metadata.sensitive`. `redact`: each value is replaced
 * by a marker such as `[REDACTED:iban]`. `refuse`: nothing is stored.
 */
export type PrivacyMode = (typeof PRIVACY_MODES)[number];

/** The mode of each group of sensitive values. */
export type PrivacyPolicy = Readonly<Record<SensitiveGroup, PrivacyMode>>;

/** The kinds of sensitive values, by group. Markers in texts, `metadata.sensitive` and reports name them. */
export const SENSITIVE_KINDS = {
  secrets: [
    'api_key',
    'anthropic_key',
    'authorization',
    'aws_access_key',
    'aws_secret_key',
    'azure_key',
    'service_key',
    'cloudflare_key',
    'datadog_key',
    'digitalocean_key',
    'discord_key',
    'github_key',
    'gitlab_key',
    'google_key',
    'huggingface_key',
    'jwt',
    'mailgun_key',
    'npm_key',
    'openai_key',
    'password',
    'private_key',
    'pypi_key',
    'sendgrid_key',
    'shopify_key',
    'slack_key',
    'square_key',
    'stripe_key',
    'telegram_key',
    'twilio_key',
    'url_password',
  ],
  personal: [
    'card',
    'email',
    'iban',
    'ip_address',
    'location',
    'mac_address',
    'other_personal',
    'person',
    'phone',
    'us_ssn',
  ],
} as const satisfies Record<SensitiveGroup, readonly string[]>;

/** Name of a kind of sensitive value, in either group. */
export type SensitiveKind = (typeof SENSITIVE_KINDS)[SensitiveGroup][number];

/** Position of a sensitive value in a text, in UTF-16 code units; `end` is the offset after its last character. */
export interface SensitiveSpan {
  readonly kind: SensitiveKind;
  readonly start: number;
  readonly end: number;
}

/** What was done about the sensitive values of one memory. It names kinds of values, never values. */
export interface ScreenReport {
  /** Number of values that a marker replaced, by kind; empty if none was. */
  readonly redacted: Readonly<Partial<Record<SensitiveKind, number>>>;
  /**
   * Kinds of values that were stored as they are, sorted; empty if there are none. `metadata.sensitive` names them,
   * unless the metadata would exceed 16 KiB with them.
   */
  readonly marked: readonly SensitiveKind[];
}

/** Reply to a change of a memory; `screened` is absent if nothing was redacted and no kind marked. */
export interface Screened {
  readonly screened?: ScreenReport;
}

/** The methods of a tenant for its privacy policy. */
export interface PrivacySettings {
  /** Returns the tenant's own policy, or the policy of `OM_PII` if the tenant has none. */
  privacyPolicy(): Promise<PrivacyPolicy>;
  /**
   * Sets the tenant's own policy, which applies to all later writes. What is stored already is not changed.
   * @param caller the caller of the request, who must still be admitted when the policy is stored; null or left out for
   *   what no request asks for
   * @throws EngineError `unauthenticated` if the caller is no longer admitted; errors of `ControlChanges.change`
   */
  putPrivacyPolicy(policy: PrivacyPolicy, caller?: Caller | null): Promise<void>;
}
