/**
 * The outcomes that the query to one member of a federation can have: an answer (`answered`); no answer in time
 * (`timeout`); no connection (`unreachable`); an error status of its server, or a rate limit of this server
 * (`refused`); a reply that is no valid answer (`invalid`); a tenant of this server that cannot be read, or an answer
 * too large for the room that is left (`failed`).
 */
export const MEMBER_OUTCOMES = ['answered', 'timeout', 'unreachable', 'refused', 'invalid', 'failed'] as const;
export type MemberOutcome = (typeof MEMBER_OUTCOMES)[number];
