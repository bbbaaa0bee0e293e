/**
 * Checks the id of the user whose memories are recalled and stored.
 * @throws TypeError if it is not a string: a request without a user would reach the memories of all users
 */
export function checkUser(userId: unknown): asserts userId is string {
  if (typeof userId !== 'string') throw new TypeError('userId: expected a text');
}
