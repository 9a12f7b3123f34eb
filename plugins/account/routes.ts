import type { RouteDeclarer } from 'busbar/sdk'
import type { Account } from './account.js'
import { alertRoutes } from './alert-routes.js'
import { invitationRoutes } from './invitation-routes.js'
import { passwordRoutes } from './password-routes.js'
import { profileRoutes } from './profile-routes.js'
import { signInRoutes } from './sign-in-routes.js'
import { totpRoutes } from './totp-routes.js'

export function routes(route: RouteDeclarer<Account>) {
  signInRoutes(route)
  profileRoutes(route)
  passwordRoutes(route)
  totpRoutes(route)
  invitationRoutes(route)
  alertRoutes(route)
}
