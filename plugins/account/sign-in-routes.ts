import { identityProblems, locked, newPasswordProblems } from 'busbar/api/identity'
import { allow, type RouteDeclarer, statusResponse } from 'busbar/sdk'
import type { Account } from './account.js'
import { clientOf, signedIn } from './account-service.js'
import { problems } from './problems.js'
import {
  firstUser,
  loginAnswer,
  loginBody,
  loginResult,
  loginVerifyBody,
  refusal,
  setupBody,
  setupStatus
} from './schemas.js'

const group = 'Public'
const perMinute = (max: number) => ({ max, windowSeconds: 60 })

export function signInRoutes(route: RouteDeclarer<Account>) {
  route({
    method: 'GET',
    url: '/api/auth/setup',
    group,
    operationId: 'GetSetup',
    summary: 'Get Setup',
    description: 'Whether the platform is new, and what its set-up asks for.',
    access: allow.public('says only whether the first user exists'),
    schema: { response: { 200: setupStatus } },
    handler: async (_, { identity }) => {
      const isRequired = await identity.isSetupRequired()
      return {
        setup_required: isRequired,
        code_required: isRequired && (await identity.isSetupCodeRequired())
      }
    }
  })
  route({
    method: 'POST',
    url: '/api/auth/setup',
    group,
    operationId: 'Setup',
    summary: 'Setup',
    description: 'Makes the first user, who is an admin, once. It does not sign in.',
    problems: [
      identityProblems.setupCode,
      identityProblems.setupNotLocal,
      identityProblems.setupCompleted,
      identityProblems.emailInvalid,
      identityProblems.emailTaken,
      ...newPasswordProblems
    ],
    limit: perMinute(10),
    access: allow.public(
      'makes the first user; refused as soon as there is one, and without the one-time code where the network reaches it'
    ),
    schema: { body: setupBody, response: { 201: firstUser } },
    audit: { action: 'create_user', claims: 'email', resource: 'user', id: { result: 'id' } },
    precondition: async ({ headers }, { identity }) => {
      await identity.checkSetupRequest(headers)
    },
    handler: async ({ body: { instance_name: instanceName, code, ...account } }, { identity }) => {
      await identity.checkSetupCode(code)
      return await identity.setUp({ ...account, instanceName })
    }
  })
  route({
    method: 'POST',
    url: '/api/auth/login',
    group,
    operationId: 'Login',
    summary: 'Login',
    description:
      'Answers a session, in the body for programs and in cookies for browsers; for a user with a second factor a challenge without cookies, which `POST /api/auth/login/verify` takes. Five wrong passwords for one account from one place lock that pair for fifteen minutes.',
    problems: [identityProblems.wrongCredentials, locked, identityProblems.busy],
    limit: perMinute(5),
    access: allow.public('a sign-in has no credential but its body'),
    schema: { body: loginBody, response: { 200: loginAnswer } },
    audit: {
      action: 'login',
      failure: 'login_failed',
      claims: 'email',
      unless: 'challenge',
      resource: 'user',
      id: { result: 'user.id' }
    },
    handler: async (request, { account }) => await account.logIn(request.body, clientOf(request))
  })
  route({
    method: 'POST',
    url: '/api/auth/login/verify',
    group,
    operationId: 'LoginVerify',
    summary: 'Login Verify',
    description: 'Answers the challenge of a sign-in with a code. A challenge has five attempts.',
    problems: [
      identityProblems.unknownMethod,
      identityProblems.challengeExpired,
      identityProblems.wrongCode,
      identityProblems.codeReused,
      identityProblems.totpDisabled,
      locked
    ],
    limit: perMinute(5),
    access: allow.public('the challenge in the body is the credential'),
    schema: { body: loginVerifyBody, response: { 200: loginResult } },
    audit: {
      action: 'login',
      failure: 'login_2fa_failed',
      claims: 'user.email',
      resource: 'user',
      id: { result: 'user.id' }
    },
    handler: async (request, { identity }) =>
      signedIn(await identity.verifyLogin(request.body, clientOf(request)))
  })
  route({
    method: 'POST',
    url: '/api/auth/refresh',
    group,
    operationId: 'Refresh',
    summary: 'Refresh',
    description:
      'Renews the session that the refresh cookie is of: secret and refresh secret are new, the former ones are void. A refresh secret that is shown twice ends the session. When it is refused the cookies are taken away.',
    problems: [
      problems.refreshRefused,
      { status: 403, code: 'E_CSRF', message: 'the CSRF token is missing or wrong' }
    ],
    limit: perMinute(30),
    access: allow.public('the refresh cookie is the credential; the CSRF token is checked with it'),
    schema: { response: { 200: loginResult, 401: refusal } },
    handler: async (request, { account }) => await account.refresh(request)
  })
  route({
    method: 'POST',
    url: '/api/auth/logout',
    group: 'Profile',
    operationId: 'Logout',
    summary: 'Logout',
    description: 'Ends this session and takes its cookies away.',
    access: allow.session({ project: 'none', whileEnrolling: true }),
    schema: { response: { 200: statusResponse } },
    audit: { action: 'logout', resource: 'user' },
    handler: async ({ caller }, { account }) => await account.logOut(caller)
  })
}
