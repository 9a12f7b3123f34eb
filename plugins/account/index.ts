import { identity } from 'busbar/api/identity'
import { definePlugin } from 'busbar/sdk'
import { AccountService } from './account-service.js'
import { passwordRoutes } from './password-routes.js'
import { profileRoutes } from './profile-routes.js'
import { signInRoutes } from './sign-in-routes.js'
import { totpRoutes } from './totp-routes.js'

export default definePlugin({
  id: 'account',
  needs: { identity },
  start: ({ use }) => new AccountService(use.identity),
  routes (route) {
    signInRoutes(route)
    profileRoutes(route)
    passwordRoutes(route)
    totpRoutes(route)
  }
})
