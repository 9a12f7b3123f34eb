import { identity } from 'busbar/api/identity'
import { mailPost } from 'busbar/api/mail'
import { definePlugin, kernel, optional } from 'busbar/sdk'
import { AccountService } from './account-service.js'
import { alertRoutes } from './alert-routes.js'
import { invitationRoutes } from './invitation-routes.js'
import { jobs } from './jobs.js'
import { passwordRoutes } from './password-routes.js'
import { PasswordRecovery } from './password-recovery.js'
import { profileRoutes } from './profile-routes.js'
import { signInRoutes } from './sign-in-routes.js'
import { totpRoutes } from './totp-routes.js'

export default definePlugin({
  id: 'account',
  needs: { identity, database: kernel.database, jobs: kernel.jobs, instance: kernel.instance, mail: optional(mailPost) },
  start: ({ use, log }) => new AccountService(use.identity, new PasswordRecovery({ ...use, log })),
  routes (route) {
    signInRoutes(route)
    profileRoutes(route)
    passwordRoutes(route)
    totpRoutes(route)
    invitationRoutes(route)
    alertRoutes(route)
  },
  jobs
})
