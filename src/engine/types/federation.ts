/**
 * What can come of a member of a federated question: an answer (`answered`); none in time (`timeout`); no connection
 * (`unreachable`); an error of the server, or a rate limit here (`refused`); a reply that is no answer (`invalid`); or
 * a tenant of this server that cannot be read, or an answer that there is no room for here (`failed`).
 */
export const MEMBER_OUTCOMES = ['answered', 'timeout', 'unreachable', 'refused', 'invalid', 'failed'] as const;
export type MemberOutcome = (typeof MEMBER_OUTCOMES)[number];
