/** The two groups of sensitive values, each with a mode of its own. */
export const SENSITIVE_GROUPS = ['secrets', 'personal'] as const;
/** `secrets` open something: keys, passwords, tokens. `personal` leads to a person: addresses, numbers, names. */
export type SensitiveGroup = (typeof SENSITIVE_GROUPS)[number];

/** The modes of a group; `PrivacyMode` says what they mean. */
export const PRIVACY_MODES = ['off', 'mark', 'redact', 'refuse'] as const;
/**
 * Says what becomes of a text with sensitive values before it is stored. `off` does not look for them; `mark` stores
 * the text as it is and names the kinds in `metadata.sensitive`; `redact` stores a marker such as `[REDACTED:iban]` in
 * place of each value; `refuse` stores nothing.
 */
export type PrivacyMode = (typeof PRIVACY_MODES)[number];

/** The mode of each group. */
export type PrivacyPolicy = Readonly<Record<SensitiveGroup, PrivacyMode>>;

/** The kinds of sensitive values, by group. Markers, marks and reports name them. */
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

/** Name of a kind of sensitive value. */
export type SensitiveKind = (typeof SENSITIVE_KINDS)[SensitiveGroup][number];

/** A sensitive value's place in a text, in UTF-16 units; `end` is the offset after its last character. */
export interface SensitiveSpan {
  readonly kind: SensitiveKind;
  readonly start: number;
  readonly end: number;
}

/** What was done about the sensitive values of one memory. It names kinds, never values. */
export interface ScreenReport {
  /** Number of values that a marker replaced, by kind; empty for none. */
  readonly redacted: Readonly<Partial<Record<SensitiveKind, number>>>;
  /** Kinds that were stored as they are and are named in `metadata.sensitive`, sorted; empty for none. */
  readonly marked: readonly SensitiveKind[];
}

/** What a tenant says about sensitive values in its texts. */
export interface PrivacySettings {
  /** Returns the tenant's own policy, or that of `OM_PII` if it has none. */
  privacyPolicy(): Promise<PrivacyPolicy>;
  /** Gives the tenant a policy of its own, from the next write on. What is stored stays as it is. */
  putPrivacyPolicy(policy: PrivacyPolicy): Promise<void>;
}
