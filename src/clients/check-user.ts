/**
 * Checks the user that recalled and stored memories belong to.
 * @throws TypeError for a user that is no text: a request without a user reaches the memories of all users
 */
export function checkUser(userId: unknown): asserts userId is string {
  if (typeof userId !== 'string') throw new TypeError('userId: expected a text');
}
