SELECT
  *
FROM (
  SELECT
    "t4"."item",
    CAST(SUM("t4"."total") AS BIGINT) AS "score"
  FROM (
    SELECT
      "t3"."who",
      "t3"."item",
      CAST(IF(
        IF("t3"."total" IS NULL, "t3"."total", LEAST(5000, "t3"."total")) IS NULL,
        IF("t3"."total" IS NULL, "t3"."total", LEAST(5000, "t3"."total")),
        GREATEST(-500, IF("t3"."total" IS NULL, "t3"."total", LEAST(5000, "t3"."total")))
      ) AS DECIMAL(38, 0)) AS "total"
    FROM (
      SELECT
        "t2"."who",
        "t2"."item",
        SUM("t2"."steps") AS "total"
      FROM (
        SELECT
          "t1"."who",
          "t1"."item",
          CAST("t1"."steps" AS DECIMAL(38, 0)) AS "steps"
        FROM (
          SELECT
            TO_UTF8("t0"."customer") AS "who",
            "t0"."number" AS "item",
            CASE
              WHEN ABS(IF(IS_NAN(CAST("t0"."price" AS DOUBLE)), NULL, CAST("t0"."price" AS DOUBLE))) < CAST(0.0025 AS DOUBLE)
              THEN 0
              ELSE CAST(FLOOR(
                (
                  IF(
                    IF(
                      IF(IS_NAN(CAST("t0"."price" AS DOUBLE)), NULL, CAST("t0"."price" AS DOUBLE)) IS NULL,
                      IF(IS_NAN(CAST("t0"."price" AS DOUBLE)), NULL, CAST("t0"."price" AS DOUBLE)),
                      LEAST(
                        CAST(10000000.0 AS DOUBLE),
                        IF(IS_NAN(CAST("t0"."price" AS DOUBLE)), NULL, CAST("t0"."price" AS DOUBLE))
                      )
                    ) IS NULL,
                    IF(
                      IF(IS_NAN(CAST("t0"."price" AS DOUBLE)), NULL, CAST("t0"."price" AS DOUBLE)) IS NULL,
                      IF(IS_NAN(CAST("t0"."price" AS DOUBLE)), NULL, CAST("t0"."price" AS DOUBLE)),
                      LEAST(
                        CAST(10000000.0 AS DOUBLE),
                        IF(IS_NAN(CAST("t0"."price" AS DOUBLE)), NULL, CAST("t0"."price" AS DOUBLE))
                      )
                    ),
                    GREATEST(
                      CAST(-10000000.0 AS DOUBLE),
                      IF(
                        IF(IS_NAN(CAST("t0"."price" AS DOUBLE)), NULL, CAST("t0"."price" AS DOUBLE)) IS NULL,
                        IF(IS_NAN(CAST("t0"."price" AS DOUBLE)), NULL, CAST("t0"."price" AS DOUBLE)),
                        LEAST(
                          CAST(10000000.0 AS DOUBLE),
                          IF(IS_NAN(CAST("t0"."price" AS DOUBLE)), NULL, CAST("t0"."price" AS DOUBLE))
                        )
                      )
                    )
                  ) / CAST(0.01 AS DOUBLE)
                ) + CAST(0.5 AS DOUBLE)
              ) AS BIGINT)
            END AS "steps"
          FROM "mart"."sales" AS "t0"
        ) AS "t1"
        WHERE
          "t1"."who" IS NOT NULL AND "t1"."item" IS NOT NULL AND "t1"."steps" IS NOT NULL
      ) AS "t2"
      GROUP BY
        1,
        2
    ) AS "t3"
  ) AS "t4"
  GROUP BY
    1
) AS "t5"
WHERE
  "t5"."item" BETWEEN 0 AND 99
