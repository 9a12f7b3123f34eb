import { extensionPoint } from 'busbar/sdk'

/**
 * A plugin's say before a user is deleted, by the plugin's id: resolve with a sentence that says what the
 * user still owns and what to do about it, or with undefined when nothing is in the way.
 */
export interface UserRemovalCheck {
  refusal(userId: string): Promise<string | undefined>
}
export const userRemoval = extensionPoint<UserRemovalCheck>('users.removal')
