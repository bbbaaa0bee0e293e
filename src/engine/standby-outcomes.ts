/** What can become of a read that was to use a standby. After all but the first, the primary answers it. */
export const STANDBY_OUTCOMES = ['standby', 'behind', 'failed', 'down'] as const;
